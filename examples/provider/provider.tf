terraform {
  required_providers { statecrypt = { source = "statecrypt/statecrypt" } }
}

variable "state_passphrase" {
  type      = string
  ephemeral = true
}

variable "old_passphrase" {
  type      = string
  ephemeral = true
}

variable "git_token" {
  type      = string
  ephemeral = true
}

provider "statecrypt" {
  key_provider {
    pbkdf2 {
      name       = "new"
      passphrase = var.state_passphrase
    }
    pbkdf2 {
      name       = "old"
      passphrase = var.old_passphrase
    }
  }

  method {
    aes_gcm {
      name = "new"
      keys = "key_provider.pbkdf2.new"
    }
    aes_gcm {
      name = "old"
      keys = "key_provider.pbkdf2.old"
    }
  }

  # For every source that sets no method of its own.
  default {
    method = "method.aes_gcm.new"
    fallback { method = "method.aes_gcm.old" }
  }

  # Sent to this group of repositories and nowhere else.
  credentials {
    git {
      url      = "https://gitlab.example.com/acme/"
      username = "ci"
      password = var.git_token
    }
  }
}

terraform {
  required_providers {
    statecrypt = {
      source = "statecrypt/statecrypt"
    }
  }
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
      name       = "main"
      passphrase = var.state_passphrase
    }
    pbkdf2 {
      name       = "old"
      passphrase = var.old_passphrase
    }
  }

  method {
    aes_gcm {
      name = "main"
      keys = "key_provider.pbkdf2.main"
    }
    aes_gcm {
      name = "old"
      keys = "key_provider.pbkdf2.old"
    }
  }

  # For every source that sets no method of its own.
  default {
    method = "method.aes_gcm.main"
    fallback {
      method = "method.aes_gcm.old"
    }
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

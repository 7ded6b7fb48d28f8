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

provider "statecrypt" {
  key_provider {
    pbkdf2 {
      name       = "main"
      passphrase = var.state_passphrase
    }
  }

  method {
    aes_gcm {
      name = "main"
      keys = "key_provider.pbkdf2.main"
    }
  }

  default {
    method = "method.aes_gcm.main"
  }

  credentials {
    kubernetes {
      config_path    = "~/.kube/config"
      config_context = "state-reader"
    }
  }
}

terraform {
  required_providers {
    statecrypt = { source = "statecrypt/statecrypt" }
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

  default {
    method = "method.aes_gcm.new"
    fallback {
      method = "method.aes_gcm.old"
    }
  }
}

data "statecrypt_remote_state" "network" {
  file { path = "network.tfstate" }
}

output "vpc_id" {
  value = data.statecrypt_remote_state.network.outputs.vpc_id
}

# This one is never written with the new key.
data "statecrypt_remote_state" "archive" {
  file { path = "archive.tfstate" }
  method = "method.aes_gcm.old"
}

output "archived_vpc_id" {
  value = data.statecrypt_remote_state.archive.outputs.vpc_id
}

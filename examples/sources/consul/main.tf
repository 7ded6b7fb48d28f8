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

variable "consul_token" {
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
    consul {
      address      = "https://consul.example.com:8501"
      access_token = var.consul_token
    }
  }
}

data "statecrypt_remote_state" "network" {
  consul {
    path = "network"
  }
}

output "vpc_id" {
  value = data.statecrypt_remote_state.network.outputs.vpc_id
}

terraform {
  required_providers { statecrypt = { source = "statecrypt/statecrypt" } }
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
    pbkdf2 { passphrase = var.state_passphrase }
  }

  credentials {
    consul {
      address      = "https://consul.example.com:8501"
      access_token = var.consul_token
    }
  }
}

data "statecrypt_remote_state" "network" {
  consul { path = "network" }
}

output "vpc_id" { value = data.statecrypt_remote_state.network.outputs.vpc_id }

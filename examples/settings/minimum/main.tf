terraform {
  required_providers {
    statecrypt = { source = "statecrypt/statecrypt" }
  }
}

variable "state_passphrase" {
  type      = string
  ephemeral = true # before Terraform 1.10 and OpenTofu 1.11: sensitive = true
}

provider "statecrypt" {
  key_provider {
    pbkdf2 { passphrase = var.state_passphrase }
  }
}

data "statecrypt_remote_state" "network" {
  file { path = "network.tfstate" }
}

output "vpc_id" {
  value = data.statecrypt_remote_state.network.outputs.vpc_id
}

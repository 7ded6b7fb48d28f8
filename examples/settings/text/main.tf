terraform {
  required_providers {
    statecrypt = { source = "statecrypt/statecrypt" }
  }
}

variable "state_passphrase" {
  type      = string
  ephemeral = true
}

provider "statecrypt" {
  encryption           = file("${path.module}/encryption.hcl")
  encryption_variables = { passphrase = var.state_passphrase }
}

data "statecrypt_remote_state" "network" {
  file { path = "network.tfstate" }
}

output "vpc_id" {
  value = data.statecrypt_remote_state.network.outputs.vpc_id
}

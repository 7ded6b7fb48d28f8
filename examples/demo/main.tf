# The whole story in one file: a state that OpenTofu encrypted, read by
# Terraform or OpenTofu. "make demo" runs it.

terraform {
  required_providers {
    statecrypt = {
      source = "statecrypt/statecrypt"
    }
  }
}

variable "state_passphrase" {
  type      = string
  ephemeral = true # never stored, neither in a plan nor in a state
}

provider "statecrypt" {
  key_provider {
    pbkdf2 {
      passphrase = var.state_passphrase
    }
  }
}

data "statecrypt_remote_state" "network" {
  file {
    path = "network.tfstate"
  }
}

output "vpc_id" {
  value = data.statecrypt_remote_state.network.outputs.vpc_id
}

output "subnet_ids" {
  value = { for zone, subnet in data.statecrypt_remote_state.network.outputs.subnets : zone => subnet.id }
}

output "not_stored" {
  value = data.statecrypt_remote_state.network.sensitive_output_names
}

output "decrypted_with" {
  value = data.statecrypt_remote_state.network.decrypted_with
}

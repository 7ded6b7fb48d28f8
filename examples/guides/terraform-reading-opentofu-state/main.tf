terraform {
  required_providers { statecrypt = { source = "statecrypt/statecrypt" } }
}

variable "state_passphrase" {
  type      = string
  ephemeral = true # before Terraform 1.10: sensitive = true
}

provider "statecrypt" {
  key_provider {
    pbkdf2 { passphrase = var.state_passphrase }
  }
}

data "statecrypt_remote_state" "network" {
  s3 {
    bucket = "acme-states"
    key    = "network/terraform.tfstate"
    region = "eu-west-1"
  }
}

output "vpc_id" { value = data.statecrypt_remote_state.network.outputs.vpc_id }

terraform {
  required_providers { statecrypt = { source = "statecrypt/statecrypt" } }
}

variable "state_passphrase" {
  type      = string
  ephemeral = true
}

variable "cos_secret_key" {
  type      = string
  ephemeral = true
}

provider "statecrypt" {
  key_provider {
    pbkdf2 { passphrase = var.state_passphrase }
  }

  credentials {
    cos {
      secret_id  = "AKIDExampleExampleExampleExampleExam"
      secret_key = var.cos_secret_key
    }
  }
}

data "statecrypt_remote_state" "network" {
  cos {
    bucket = "acme-states-1250000000"
    prefix = "network"
    region = "eu-frankfurt"
  }
}

output "vpc_id" { value = data.statecrypt_remote_state.network.outputs.vpc_id }

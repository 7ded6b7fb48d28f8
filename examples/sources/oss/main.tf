terraform {
  required_providers { statecrypt = { source = "statecrypt/statecrypt" } }
}

variable "state_passphrase" {
  type      = string
  ephemeral = true
}

variable "oss_secret_key" {
  type      = string
  ephemeral = true
}

provider "statecrypt" {
  key_provider {
    pbkdf2 { passphrase = var.state_passphrase }
  }

  credentials {
    oss {
      access_key = "LTAI5tExampleExampleExam"
      secret_key = var.oss_secret_key
    }
  }
}

data "statecrypt_remote_state" "network" {
  oss {
    bucket = "acme-states"
    prefix = "network"
    region = "eu-central-1"
  }
}

output "vpc_id" { value = data.statecrypt_remote_state.network.outputs.vpc_id }

terraform {
  required_providers { statecrypt = { source = "statecrypt/statecrypt" } }
}

variable "state_passphrase" {
  type      = string
  ephemeral = true
}

variable "oci_secret_key" {
  type      = string
  ephemeral = true
}

provider "statecrypt" {
  key_provider {
    pbkdf2 { passphrase = var.state_passphrase }
  }

  credentials {
    oci {
      access_key = "0123456789abcdef0123456789abcdef01234567"
      secret_key = var.oci_secret_key
    }
  }
}

data "statecrypt_remote_state" "network" {
  oci {
    bucket    = "states"
    namespace = "acmenamespace"
    region    = "eu-frankfurt-1"
    key       = "network/terraform.tfstate"
  }
}

output "vpc_id" { value = data.statecrypt_remote_state.network.outputs.vpc_id }

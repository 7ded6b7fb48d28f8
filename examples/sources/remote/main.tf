terraform {
  required_providers { statecrypt = { source = "statecrypt/statecrypt" } }
}

variable "state_passphrase" {
  type      = string
  ephemeral = true
}

variable "tfe_token" {
  type      = string
  ephemeral = true
}

provider "statecrypt" {
  key_provider {
    pbkdf2 { passphrase = var.state_passphrase }
  }

  # Leave this out to use TF_TOKEN_app_terraform_io, or what terraform login saved.
  credentials {
    remote {
      url   = "https://app.terraform.io/"
      token = var.tfe_token
    }
  }
}

# The state that OpenTofu encrypted and keeps in the workspace network.
data "statecrypt_remote_state" "network" {
  remote {
    hostname     = "app.terraform.io"
    organization = "acme"

    workspaces { name = "network" }
  }
}

output "vpc_id" { value = data.statecrypt_remote_state.network.outputs.vpc_id }

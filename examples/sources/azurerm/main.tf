terraform {
  required_providers { statecrypt = { source = "statecrypt/statecrypt" } }
}

variable "state_passphrase" {
  type      = string
  ephemeral = true
}

variable "client_secret" {
  type      = string
  ephemeral = true
}

provider "statecrypt" {
  key_provider {
    pbkdf2 { passphrase = var.state_passphrase }
  }

  credentials {
    azurerm {
      use_azuread_auth = true
      tenant_id        = "00000000-0000-0000-0000-000000000001"
      client_id        = "00000000-0000-0000-0000-000000000002"
      client_secret    = var.client_secret
    }
  }
}

# The blob network.tfstateenv:prod, in which OpenTofu stored an encrypted state.
data "statecrypt_remote_state" "network" {
  azurerm {
    storage_account_name = "acmestates"
    container_name       = "tfstate"
    key                  = "network.tfstate"
  }
  workspace = "prod"
}

output "vpc_id" { value = data.statecrypt_remote_state.network.outputs.vpc_id }

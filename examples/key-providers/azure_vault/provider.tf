terraform {
  required_providers { statecrypt = { source = "statecrypt/statecrypt" } }
}

variable "client_secret" {
  type      = string
  ephemeral = true
}

provider "statecrypt" {
  key_provider {
    azure_vault {
      vault_uri      = "https://example-states.vault.azure.net"
      vault_key_name = "tofu-state"
      key_length     = 32

      tenant_id     = "00000000-0000-0000-0000-000000000001"
      client_id     = "00000000-0000-0000-0000-000000000002"
      client_secret = var.client_secret
    }
  }
}

data "statecrypt_remote_state" "network" {
  git {
    repository = "https://gitlab.example.com/acme/tf-state.git"
    ref        = "main"
    path       = "network/terraform.tfstate"
  }
}

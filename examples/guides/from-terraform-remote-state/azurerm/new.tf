provider "statecrypt" {
  credentials {
    azurerm {
      use_azuread_auth = true
      tenant_id        = "00000000-0000-0000-0000-000000000001"
    }
  }
}

data "statecrypt_remote_state" "network" {
  azurerm {
    storage_account_name = "acmestates"
    container_name       = "tfstate"
    key                  = "network.tfstate"
  }
  workspace = "prod"
  method    = "unencrypted"
}

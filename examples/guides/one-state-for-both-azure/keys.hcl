backend "azurerm" {
  storage_account_name = "acmestates"
  container_name       = "tfstate"
  key                  = "network.tfstate"
  use_azuread_auth     = true
}

key_provider "pbkdf2" "main" {
  passphrase = var.state_passphrase
}

method "aes_gcm" "main" {
  keys = key_provider.pbkdf2.main
}

state {
  method = method.aes_gcm.main
}

plan {
  method = method.aes_gcm.main
}

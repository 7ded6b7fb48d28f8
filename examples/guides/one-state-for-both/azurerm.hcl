backend "azurerm" {
  storage_account_name = "acmestates"
  container_name       = "tfstate"
  key                  = "network/terraform.tfstate"
  use_azuread_auth     = true
}

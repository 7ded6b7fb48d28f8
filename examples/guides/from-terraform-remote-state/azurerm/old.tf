data "terraform_remote_state" "network" {
  backend   = "azurerm"
  workspace = "prod"

  config = {
    storage_account_name = "acmestates"
    container_name       = "tfstate"
    key                  = "network.tfstate"
    use_azuread_auth     = true
    tenant_id            = "00000000-0000-0000-0000-000000000001"
  }
}

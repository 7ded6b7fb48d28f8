data "terraform_remote_state" "network" {
  backend   = "remote"
  workspace = "prod"

  config = {
    hostname     = "app.terraform.io"
    organization = "acme"
    token        = var.tfe_token

    workspaces = {
      prefix = "network-"
    }
  }
}

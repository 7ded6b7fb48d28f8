provider "statecrypt" {
  credentials {
    remote {
      url   = "https://app.terraform.io/"
      token = var.tfe_token
    }
  }
}

data "statecrypt_remote_state" "network" {
  workspace = "prod"

  remote {
    hostname     = "app.terraform.io"
    organization = "acme"

    workspaces { prefix = "network-" }
  }
  method = "unencrypted" # a plain state
}

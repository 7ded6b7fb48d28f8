provider "statecrypt" {}

data "statecrypt_remote_state" "network" {
  file { path = "../network/terraform.tfstate" }
  method = "unencrypted"
}

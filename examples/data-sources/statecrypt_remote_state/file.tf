# A plaintext state, in a workspace of a configuration nearby.
data "statecrypt_remote_state" "staging" {
  file {
    path          = "../network/terraform.tfstate"
    workspace_dir = "../network/terraform.tfstate.d"
  }

  workspace = "staging"
  method    = "unencrypted"
}

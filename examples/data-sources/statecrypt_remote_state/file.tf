# A plaintext state of another workspace, which has to be asked for by name.
data "statecrypt_remote_state" "local" {
  file {
    path = "../network/terraform.tfstate"
  }

  workspace = "staging"
  method    = "unencrypted"
}

# The same state through a running terraform-backend-git, for a while.
data "statecrypt_remote_state" "through_the_daemon" {
  http {
    address = "http://127.0.0.1:6061/?type=git&repository=https://gitlab.example.com/acme/tf-state.git&ref=main&state=legacy/terraform.tfstate"
  }

  method = "unencrypted"
}

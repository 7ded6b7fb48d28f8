# The same settings as OpenTofu writes them. They may also stand in the
# environment variable TF_ENCRYPTION; the provider block is then empty.
provider "statecrypt" {
  alias      = "text"
  encryption = file("${path.module}/encryption.hcl")

  encryption_variables = {
    passphrase = var.state_passphrase
  }
}

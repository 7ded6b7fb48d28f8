provider "statecrypt" {
  encryption           = file("${path.module}/encryption.hcl")
  encryption_variables = { passphrase = var.state_passphrase }
}

backend "s3" {
  bucket       = "acme-tf-state"
  key          = "network/terraform.tfstate"
  region       = "eu-west-1"
  use_lockfile = true
}

key_provider "pbkdf2" "main" {
  passphrase = var.state_passphrase
}

method "aes_gcm" "main" {
  keys = key_provider.pbkdf2.main
}

state {
  method = method.aes_gcm.main
}

plan {
  method = method.aes_gcm.main
}

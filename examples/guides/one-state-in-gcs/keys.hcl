backend "gcs" {
  bucket = "acme-tf-state"
  prefix = "network"
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

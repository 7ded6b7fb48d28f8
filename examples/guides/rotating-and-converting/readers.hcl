key_provider "pbkdf2" "readers" {
  passphrase = var.readers_passphrase
}

method "aes_gcm" "readers" {
  keys = key_provider.pbkdf2.readers
}

state {
  method   = method.aes_gcm.readers
  enforced = true
}

key_provider "pbkdf2" "main" {
  passphrase = "the example's passphrase"
}

method "aes_gcm" "main" {
  keys = key_provider.pbkdf2.main
}

state {
  method = method.aes_gcm.main
}

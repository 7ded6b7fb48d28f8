key_provider "pbkdf2" "y2025" {
  passphrase = var.passphrase_2025
}

method "aes_gcm" "y2025" {
  keys = key_provider.pbkdf2.y2025
}

state {
  method   = method.aes_gcm.y2025
  enforced = true
}

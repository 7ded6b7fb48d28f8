key_provider "pbkdf2" "y2026" {
  passphrase = var.passphrase_2026
}

method "aes_gcm" "y2026" {
  keys = key_provider.pbkdf2.y2026
}

state {
  method   = method.aes_gcm.y2026
  enforced = true
}

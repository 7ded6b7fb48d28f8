key_provider "pbkdf2" "k" {
  key_length = 0
  passphrase = "correct-horse-battery-staple"
}
method "aes_gcm" "m" {
  keys = key_provider.pbkdf2.k
}
state {
  method = method.aes_gcm.m
}

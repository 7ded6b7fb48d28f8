key_provider "pbkdf2" "k" {
  passphrase = "correct-horse-battery-staple"
}
method "aes_gcm" "m" {
  keys = key_provider.pbkdf2.k
  aad = "public-aad"
}
state {
  method = method.aes_gcm.m
}

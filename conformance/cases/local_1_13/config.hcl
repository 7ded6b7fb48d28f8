key_provider "pbkdf2" "k" {
  passphrase = "indented-inside-passphrase"
  iterations = 200000
}
method "aes_gcm" "m" {
  keys = key_provider.pbkdf2.k
}
state {
  method = method.aes_gcm.m
}

key_provider "pbkdf2" "k" {
  passphrase = "  a passphrase with blanks around it \t"
  iterations = 200000
}
method "aes_gcm" "m" {
  keys = key_provider.pbkdf2.k
}
state {
  method = method.aes_gcm.m
}

key_provider "pbkdf2" "p" {
  passphrase = "a passphrase for one run"
  iterations = 200000
}
method "aes_gcm" "m" {
  keys = key_provider.pbkdf2.p
}
state {
  method = method.aes_gcm.m
}

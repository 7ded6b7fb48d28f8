key_provider "pbkdf2" "a" {
  passphrase    = "a throwaway passphrase"
  iterations    = 200000
  key_length    = 100
  hash_function = "sha256"
}
key_provider "pbkdf2" "b" {
  chain         = key_provider.pbkdf2.a
  iterations    = 200000
  hash_function = "sha256"
}
method "aes_gcm" "m" {
  keys = key_provider.pbkdf2.b
}
state {
  method = method.aes_gcm.m
}

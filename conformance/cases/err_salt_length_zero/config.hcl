key_provider "pbkdf2" "k" {
  passphrase = "second throwaway passphrase"
  iterations = 200001
  key_length = 32
  salt_length = 0
  hash_function = "sha256"
}
method "aes_gcm" "m" {
  keys = key_provider.pbkdf2.k
}
state {
  method = method.aes_gcm.m
}

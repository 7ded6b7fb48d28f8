key_provider "pbkdf2" "k" {
  passphrase = "a throwaway passphrase of its own"
  iterations = 200000
  encrypted_metadata_alias = "alias of the code"
}
method "aes_gcm" "m" {
  keys = key_provider.pbkdf2.k
}
state {
  method = method.aes_gcm.m
}

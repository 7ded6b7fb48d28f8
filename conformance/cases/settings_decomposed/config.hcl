key_provider "pbkdf2" "k" {
  passphrase = "ein längerer Schlüssel"
  iterations = 200000
  encrypted_metadata_alias = "schlüssel"
}
method "aes_gcm" "m" {
  keys = key_provider.pbkdf2.k
}
state {
  method = method.aes_gcm.m
}

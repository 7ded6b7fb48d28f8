key_provider "pbkdf2" "k" {
  passphrase = "a passphrase that is not that of the file"
  iterations = 200001
  key_length = 32
  salt_length = 1
  hash_function = "sha256"
}
method "aes_gcm" "m" {
  keys = key_provider.pbkdf2.k
}
state {
  method = method.aes_gcm.m
  fallback {
    method = method.aes_gcm.old
  }
}
key_provider "pbkdf2" "old" {
  passphrase = "second throwaway passphrase"
  encrypted_metadata_alias = "key_provider.pbkdf2.k"
}
method "aes_gcm" "old" {
  keys = key_provider.pbkdf2.old
}

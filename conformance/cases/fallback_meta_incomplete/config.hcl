key_provider "pbkdf2" "k" {
  passphrase = "second throwaway passphrase"
  iterations = 200001
  key_length = 32
  salt_length = 1
  hash_function = "sha256"
}
method "aes_gcm" "m" {
  keys = key_provider.pbkdf2.k
}
key_provider "pbkdf2" "new" {
  passphrase = "a third throwaway passphrase"
  iterations = 200000
  hash_function = "sha256"
}
method "aes_gcm" "new" {
  keys = key_provider.pbkdf2.new
}
state {
  method = method.aes_gcm.new
  fallback {
    method = method.aes_gcm.m
  }
}

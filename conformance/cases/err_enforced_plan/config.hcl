key_provider "pbkdf2" "k" {
  passphrase = "a throwaway passphrase for plans"
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
}
plan {
  enforced = true
  method = method.aes_gcm.m
  fallback {
    method = method.unencrypted.u
  }
}
method "unencrypted" "u" {}

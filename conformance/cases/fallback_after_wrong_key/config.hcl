method "aes_gcm" "wrong" {
  keys = {
    encryption_key = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31]
    decryption_key = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31]
  }
}
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
state {
  method = method.aes_gcm.wrong
  fallback {
    method = method.aes_gcm.m
  }
}

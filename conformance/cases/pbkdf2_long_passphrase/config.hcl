key_provider "pbkdf2" "k" {
  passphrase = "a passphrase of more bytes than a block of SHA-512 has, which HMAC hashes before it uses it as its key: 012345678901234567890123456789012345678901234567890123456789"
  iterations = 200000
}
method "aes_gcm" "m" {
  keys = key_provider.pbkdf2.k
}
state {
  method = method.aes_gcm.m
}

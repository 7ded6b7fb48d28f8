key_provider "pbkdf2" "k" {
  passphrase = "of $${dollars} and %%{percent}"
  iterations = 200000
}
method "aes_gcm" "m" {
  keys = key_provider.pbkdf2.k
}
state {
  method = method.aes_gcm.m
}

key_provider "external" "e" {
  encrypted_metadata_alias = "one"
  command = ["sh", "./kp.sh"]
}
key_provider "pbkdf2" "p" {
  encrypted_metadata_alias = "one"
  chain = key_provider.external.e
  iterations = 200000
  hash_function = "sha256"
}
method "aes_gcm" "m" {
  keys = key_provider.pbkdf2.p
}
state {
  method = method.aes_gcm.m
}

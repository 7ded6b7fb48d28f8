key_provider "pbkdf2" "new" {
  passphrase = "a passphrase of the environment"
  iterations = 200000
}
method "aes_gcm" "new" {
  keys = key_provider.pbkdf2.new
}
state {
  method = method.aes_gcm.new
}

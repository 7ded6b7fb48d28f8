key_provider "external" "e" {
  command = ["sh", "./kp.sh", "two words", "$HOME", "*", "'\"; exit 5", ""]
}
method "aes_gcm" "m" {
  keys = key_provider.external.e
}
state {
  method = method.aes_gcm.m
}

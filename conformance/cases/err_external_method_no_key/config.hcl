key_provider "external" "e" {
  command = ["sh", "./kp.sh"]
}
method "external" "x" {
  keys = key_provider.external.e
  encrypt_command = ["sh", "./method.sh", "encrypt", "-"]
  decrypt_command = ["sh", "./method.sh", "decrypt", "-"]
}
state {
  method = method.external.x
}

method "external" "x" {
  encrypt_command = ["sh", "./method.sh", "encrypt", "-"]
  decrypt_command = ["sh", "./method.sh", "decrypt", "-"]
}
method "external" "other" {
  encrypt_command = ["false"]
  decrypt_command = ["sh", "./other.sh"]
}
state {
  method = method.external.x
  fallback {
    method = method.external.other
  }
}

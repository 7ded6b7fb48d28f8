method "external" "x" {
  encrypt_command = ["sh", "./method.sh", "encrypt", "-"]
  decrypt_command = ["sh", "./method.sh", "decrypt", "-"]
}
method "external" "gone" {
  encrypt_command = ["sh", "-c", "exit 1"]
  decrypt_command = ["./there-is-no-such-program"]
}
state {
  method = method.external.gone
  fallback {
    method = method.external.x
  }
}

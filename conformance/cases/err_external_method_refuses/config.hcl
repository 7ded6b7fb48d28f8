method "external" "x" {
  encrypt_command = ["sh", "./method.sh", "encrypt", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="]
  decrypt_command = ["sh", "./method.sh", "decrypt", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="]
}
state {
  method = method.external.x
}

path "transit/decrypt/tofu-state" {
  capabilities = ["update"]
}

provider "statecrypt" {
  key_provider {
    pbkdf2 {
      passphrase = var.state_passphrase
    }
  }
}

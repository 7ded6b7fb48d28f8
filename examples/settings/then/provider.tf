provider "statecrypt" {
  key_provider {
    pbkdf2 { passphrase = var.state_passphrase }
  }

  method {
    aes_gcm {
      name = "inner"
      keys = "key_provider.pbkdf2.main"
    }
    age {
      name           = "outer"
      identity_files = ["key.txt"]
      then           = "method.aes_gcm.inner"
    }
  }

  default { method = "method.age.outer" }
}

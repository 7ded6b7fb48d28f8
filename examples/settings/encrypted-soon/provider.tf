variable "state_passphrase" {
  type      = string
  ephemeral = true
}

provider "statecrypt" {
  key_provider {
    pbkdf2 { passphrase = var.state_passphrase }
  }

  method {
    aes_gcm {}
  }

  default {
    method = "method.aes_gcm.main"
    fallback { method = "unencrypted" }
  }
}

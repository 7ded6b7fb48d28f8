provider "statecrypt" {
  alias = "keys"

  key_provider {
    pbkdf2 {
      name       = "main"
      passphrase = var.state_passphrase
      exportable = true
    }
  }
}

ephemeral "statecrypt_derived_key" "backup" {
  provider = statecrypt.keys

  key_provider = "key_provider.pbkdf2.main"
  info         = "backup of the payments database"
  salt         = "3q2+7wAAAAAAAAAAAAAAAA==" # random, not secret, always the same
}

locals {
  # An ephemeral value, for provider blocks and write-only arguments.
  backup_key = ephemeral.statecrypt_derived_key.backup.key_base64
}

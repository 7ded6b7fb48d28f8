# The key provider must say exportable = true.
ephemeral "statecrypt_derived_key" "backup" {
  key_provider = "key_provider.pbkdf2.main"
  info         = "backup of the payments database"
  salt         = "3q2+7wAAAAAAAAAAAAAAAA==" # random, not secret, always the same
}

# ephemeral.statecrypt_derived_key.backup.key_base64

key_provider "pbkdf2" "k" {
  passphrase = "a throwaway passphrase of its own"
  encrypted_metadata_alias = "alias of the environment"
}

ephemeral "statecrypt_remote_state" "database" {
  s3 {
    bucket = "acme-states"
    key    = "database/terraform.tfstate"
    region = "eu-west-1"
  }
}

# Usually this is the provider of a database or a cluster, or a write-only
# argument such as secret_string_wo. Here it is a second statecrypt, whose
# passphrase is an output of the state.
provider "statecrypt" {
  alias = "database"

  key_provider {
    pbkdf2 {
      passphrase = ephemeral.statecrypt_remote_state.database.sensitive_outputs.password
    }
  }
}

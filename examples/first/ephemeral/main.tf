ephemeral "statecrypt_remote_state" "database" {
  s3 {
    bucket = "acme-states"
    key    = "database/terraform.tfstate"
    region = "eu-west-1"
  }
}

provider "postgresql" {
  host     = ephemeral.statecrypt_remote_state.database.outputs.host
  password = ephemeral.statecrypt_remote_state.database.sensitive_outputs.password
}

resource "aws_secretsmanager_secret_version" "database" {
  secret_id                = "database"
  secret_string_wo         = ephemeral.statecrypt_remote_state.database.sensitive_outputs.password
  secret_string_wo_version = 1
}

locals {
  database = { bucket = "acme-states", key = "database/terraform.tfstate", region = "eu-west-1" }
}

ephemeral "statecrypt_remote_state" "database" {
  s3 {
    bucket = local.database.bucket
    key    = local.database.key
    region = local.database.region
  }
}

data "statecrypt_remote_state" "database" {
  s3 {
    bucket = local.database.bucket
    key    = local.database.key
    region = local.database.region
  }
}

# The password goes to Vault, and into no plan or state; again when the state of
# the database has another serial.
resource "vault_kv_secret_v2" "database" {
  mount                = "secret"
  name                 = "database"
  data_json_wo         = jsonencode({ password = ephemeral.statecrypt_remote_state.database.sensitive_outputs.password })
  data_json_wo_version = data.statecrypt_remote_state.database.serial
}

ephemeral "statecrypt_remote_state" "database" {
  git {
    repository = "https://gitlab.example.com/acme/tf-state.git"
    path       = "database/terraform.tfstate"
  }

  only = ["password"]
}

locals {
  # An ephemeral value, for provider blocks and write-only arguments. Neither
  # the plan nor the state holds it.
  database_password = ephemeral.statecrypt_remote_state.database.sensitive_outputs.password
}

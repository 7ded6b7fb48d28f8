ephemeral "statecrypt_resource" "database" {
  git {
    repository = "https://gitlab.example.com/acme/tf-state.git"
    path       = "database/terraform.tfstate"
  }

  address = "aws_db_instance.main[0]"
}

locals {
  # An ephemeral value, for provider blocks and write-only arguments. Neither
  # the plan nor the state holds it.
  database_password = ephemeral.statecrypt_resource.database.sensitive_attributes.password
}

terraform {
  required_providers { statecrypt = { source = "statecrypt/statecrypt" } }
}

variable "state_passphrase" {
  type      = string
  ephemeral = true
}

variable "git_token" {
  type      = string
  ephemeral = true
}

provider "statecrypt" {
  allow_resource_reads = true

  key_provider {
    pbkdf2 { passphrase = var.state_passphrase }
  }

  credentials {
    git {
      url      = "https://gitlab.example.com/acme/"
      username = "ci"
      password = var.git_token
    }
  }
}

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

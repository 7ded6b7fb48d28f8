terraform {
  required_providers { statecrypt = { source = "statecrypt/statecrypt" } }
}

variable "state" {
  type    = string
  default = "database.tfstate"
}

ephemeral "statecrypt_remote_state" "database" {
  file { path = var.state }
}

# Usually this is a provider block or a write-only argument.
resource "terraform_data" "database" {
  lifecycle {
    precondition {
      condition     = length(ephemeral.statecrypt_remote_state.database.sensitive_outputs.password) >= 16
      error_message = "The password must have at least 16 characters."
    }
  }
}

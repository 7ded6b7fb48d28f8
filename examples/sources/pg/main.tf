terraform {
  required_providers { statecrypt = { source = "statecrypt/statecrypt" } }
}

variable "database_password" {
  type      = string
  ephemeral = true
}

variable "state_passphrase" {
  type      = string
  ephemeral = true
}

provider "statecrypt" {
  key_provider {
    pbkdf2 { passphrase = var.state_passphrase }
  }

  credentials {
    pg {
      conn_str = "postgres://state_reader:${urlencode(var.database_password)}@db.example.com/terraform?sslmode=verify-full"
    }
  }
}

# The row "network" of the table terraform_remote_state.states.
data "statecrypt_remote_state" "network" {
  pg {}
  workspace = "network"
}

output "vpc_id" { value = data.statecrypt_remote_state.network.outputs.vpc_id }

terraform {
  required_providers { statecrypt = { source = "statecrypt/statecrypt" } }
}

variable "secret_id" {
  type      = string
  ephemeral = true
}

provider "statecrypt" {
  key_provider {
    openbao {
      address  = "https://bao.example.com:8200"
      key_name = "tofu-state"

      # In place of token. There are auth_kubernetes and auth_jwt as well.
      auth_approle {
        role_id   = "00000000-0000-0000-0000-000000000003"
        secret_id = var.secret_id
      }
    }
  }
}

data "statecrypt_remote_state" "network" {
  git {
    repository = "https://gitlab.example.com/acme/tf-state.git"
    ref        = "main"
    path       = "network/terraform.tfstate"
  }
}

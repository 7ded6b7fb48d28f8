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

variable "api_token" {
  type      = string
  ephemeral = true
}

provider "statecrypt" {
  key_provider {
    pbkdf2 { passphrase = var.state_passphrase }
  }

  credentials {
    git {
      url      = "https://gitlab.example.com/acme/"
      username = "ci"
      password = var.git_token
    }
    http {
      url     = "https://gitlab.example.com/api/v4/projects/42/"
      headers = { PRIVATE-TOKEN = var.api_token }
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

data "statecrypt_remote_state" "cluster" {
  http { address = "https://gitlab.example.com/api/v4/projects/42/terraform/state/cluster" }
  on_missing = "defaults"
  defaults   = { region = "eu-west-1" }
}

output "vpc_id" { value = data.statecrypt_remote_state.network.outputs.vpc_id }
output "region" { value = data.statecrypt_remote_state.cluster.outputs.region }

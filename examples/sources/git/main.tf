terraform {
  required_providers { statecrypt = { source = "statecrypt/statecrypt" } }
}

variable "state_passphrase" {
  type      = string
  ephemeral = true
}

variable "gitlab_token" {
  type      = string
  ephemeral = true
}

variable "github_token" {
  type      = string
  ephemeral = true
}

variable "gitea_token" {
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
      username = "token" # any name
      password = var.gitlab_token
    }

    git {
      url      = "https://github.com/acme/"
      username = "x-access-token"
      password = var.github_token
    }

    git {
      url      = "https://gitea.example.com/acme/"
      username = "ci" # whose token it is
      password = var.gitea_token
    }
  }
}

data "statecrypt_remote_state" "network" {
  git {
    repository = "https://gitlab.example.com/acme/infra.git"
    ref        = "main"
    path       = "network/terraform.tfstate"
  }
}

data "statecrypt_remote_state" "dns" {
  git {
    repository = "https://github.com/acme/infra.git"
    ref        = "main"
    path       = "dns/terraform.tfstate"
  }
}

data "statecrypt_remote_state" "lab" {
  git {
    repository = "https://gitea.example.com/acme/infra.git"
    ref        = "main"
    path       = "lab/terraform.tfstate"
  }
}

output "vpc_id" { value = data.statecrypt_remote_state.network.outputs.vpc_id }
output "zone_id" { value = data.statecrypt_remote_state.dns.outputs.zone_id }
output "lab_url" { value = data.statecrypt_remote_state.lab.outputs.url }

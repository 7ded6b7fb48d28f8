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
    http {
      url      = "https://gitlab.example.com/api/v4/projects/42/"
      username = "token" # any name
      password = var.gitlab_token
    }

    http {
      url          = "https://api.github.com/repos/acme/infra/"
      bearer_token = var.github_token
      headers      = { Accept = "application/vnd.github.raw+json" }
    }

    http {
      url      = "https://gitea.example.com/api/packages/acme/"
      username = "ci" # whose token it is
      password = var.gitea_token
    }
  }
}

data "statecrypt_remote_state" "network" {
  http { address = "https://gitlab.example.com/api/v4/projects/42/terraform/state/network" }
}

data "statecrypt_remote_state" "dns" {
  http {
    address = "https://api.github.com/repos/acme/infra/contents/dns/terraform.tfstate?ref=main"
  }
}

data "statecrypt_remote_state" "lab" {
  http { address = "https://gitea.example.com/api/packages/acme/terraform/state/lab" }
}

output "vpc_id" { value = data.statecrypt_remote_state.network.outputs.vpc_id }
output "zone_id" { value = data.statecrypt_remote_state.dns.outputs.zone_id }
output "lab_url" { value = data.statecrypt_remote_state.lab.outputs.url }

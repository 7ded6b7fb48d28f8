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
  # Every module of this configuration can now read every resource in the states
  # that these keys open.
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

# All instances of a resource with for_each.
data "statecrypt_resource" "subnets" {
  git {
    repository = "https://gitlab.example.com/acme/tf-state.git"
    path       = "network/terraform.tfstate"
  }

  address = "module.net[\"eu\"].aws_subnet.private"
}

output "subnet_ids" {
  value = { for zone, subnet in data.statecrypt_resource.subnets.attributes : zone => subnet.id }
}

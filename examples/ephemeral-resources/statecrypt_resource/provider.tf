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

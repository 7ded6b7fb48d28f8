terraform {
  required_providers {
    statecrypt = { source = "statecrypt/statecrypt" }
  }
}

variable "state_passphrase" {
  type      = string
  ephemeral = true
}

provider "statecrypt" {
  key_provider {
    pbkdf2 { passphrase = var.state_passphrase }
  }

  method {
    aes_gcm {
      name = "inner"
      keys = "key_provider.pbkdf2.main"
    }
    age {
      name           = "outer"
      identity_files = ["key.txt"]
      then           = "method.aes_gcm.inner"
    }
  }

  default { method = "method.age.outer" }
}

data "statecrypt_remote_state" "network" {
  file { path = "network.tfstate" }
}

output "vpc_id" {
  value = data.statecrypt_remote_state.network.outputs.vpc_id
}

terraform {
  required_providers {
    statecrypt = {
      source = "statecrypt/statecrypt"
    }
  }
}

provider "statecrypt" {
  key_provider {
    age {
      name           = "team"
      identity_files = ["key.txt"]
    }
  }
  method {
    aes_gcm {
      keys = "key_provider.age.team"
    }
  }
}

data "statecrypt_remote_state" "network" {
  file {
    path = "../network/terraform.tfstate"
  }
}

output "vpc_id" {
  value = data.statecrypt_remote_state.network.outputs.vpc_id
}

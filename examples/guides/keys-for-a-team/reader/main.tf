terraform {
  required_providers { statecrypt = { source = "statecrypt/statecrypt" } }
}

provider "statecrypt" {
  key_provider {
    age { identity_files = ["key.txt"] }
  }
}

data "statecrypt_remote_state" "network" {
  file { path = "../network/terraform.tfstate" }
}

output "vpc_id" { value = data.statecrypt_remote_state.network.outputs.vpc_id }

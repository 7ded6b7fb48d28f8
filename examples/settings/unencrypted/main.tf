terraform {
  required_providers {
    statecrypt = { source = "statecrypt/statecrypt" }
  }
}

provider "statecrypt" {
  default { method = "unencrypted" }
}

data "statecrypt_remote_state" "network" {
  file { path = "network.tfstate" }
}

output "vpc_id" {
  value = data.statecrypt_remote_state.network.outputs.vpc_id
}

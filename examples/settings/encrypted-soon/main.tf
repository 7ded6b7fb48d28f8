terraform {
  required_providers { statecrypt = { source = "statecrypt/statecrypt" } }
}

data "statecrypt_remote_state" "network" {
  file { path = "network.tfstate" }
}

output "vpc_id" { value = data.statecrypt_remote_state.network.outputs.vpc_id }

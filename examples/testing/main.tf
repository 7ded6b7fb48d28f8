terraform {
  required_providers { statecrypt = { source = "statecrypt/statecrypt" } }
}

variable "state" {
  type    = string
  default = "network.tfstate"
}

data "statecrypt_remote_state" "network" {
  file { path = var.state }
}

output "vpc_id" { value = data.statecrypt_remote_state.network.outputs.vpc_id }

# The secret tfstate-default-network of the kubernetes backend, in which OpenTofu
# stored an encrypted state.
data "statecrypt_remote_state" "network" {
  kubernetes {
    namespace     = "infra"
    secret_suffix = "network"
  }
}

output "vpc_id" { value = data.statecrypt_remote_state.network.outputs.vpc_id }

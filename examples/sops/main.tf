terraform {
  required_providers { statecrypt = { source = "statecrypt/statecrypt" } }
}

provider "statecrypt" {
  method {
    sops {
      name               = "main"
      age_identity_files = ["age-identity.txt"] # or age_identities, from an ephemeral variable
      use_gpg            = false
    }
  }

  default { method = "method.sops.main" }
}

data "statecrypt_remote_state" "network" {
  file { path = "network.tfstate" }
}

output "vpc_id" { value = data.statecrypt_remote_state.network.outputs.vpc_id }
output "not_stored" { value = data.statecrypt_remote_state.network.sensitive_output_names }

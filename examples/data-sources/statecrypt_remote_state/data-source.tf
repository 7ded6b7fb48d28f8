data "statecrypt_remote_state" "network" {
  git {
    repository = "https://gitlab.example.com/acme/tf-state.git"
    ref        = "main"
    path       = "network/terraform.tfstate"
  }

  # This very state, and not an old copy of it.
  expected_lineage = "3f1c1c50-2b1e-4b0e-9d6a-0d0c6f7d8a11"
  minimum_serial   = 12
}

output "vpc_id" { value = data.statecrypt_remote_state.network.outputs.vpc_id }

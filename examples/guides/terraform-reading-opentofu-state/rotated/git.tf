data "statecrypt_remote_state" "network" {
  git {
    repository = "https://gitlab.example.com/acme/tf-state.git"
    ref        = "main"
    path       = "network/terraform.tfstate"
  }
}

output "vpc_id" { value = data.statecrypt_remote_state.network.outputs.vpc_id }
output "written_with_the_old_key" { value = data.statecrypt_remote_state.network.used_fallback }

ephemeral "statecrypt_remote_state" "vault" {
  git {
    repository = "https://gitlab.example.com/acme/tf-state.git"
    path       = "vault/terraform.tfstate"
  }

  only = ["address", "token"]
}

# Neither the plan nor the state holds the token.
provider "vault" {
  address = ephemeral.statecrypt_remote_state.vault.outputs.address
  token   = ephemeral.statecrypt_remote_state.vault.sensitive_outputs.token
}

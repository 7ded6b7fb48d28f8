# A state that terraform-backend-git wrote without encryption.
data "statecrypt_remote_state" "legacy" {
  git {
    repository = "https://gitlab.example.com/acme/tf-state.git"
    ref        = "main"
    path       = "legacy/terraform.tfstate"
    on_locked  = "warn"
  }

  method = "unencrypted"
}

output "locked_by" { value = try(data.statecrypt_remote_state.legacy.lock.who, null) }

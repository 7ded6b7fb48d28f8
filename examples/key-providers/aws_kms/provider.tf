terraform {
  required_providers { statecrypt = { source = "statecrypt/statecrypt" } }
}

provider "statecrypt" {
  key_provider {
    aws_kms {
      kms_key_id = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
      key_spec   = "AES_256"
      region     = "eu-west-1"

      # Optional: act as the role that may decrypt.
      assume_role {
        role_arn     = "arn:aws:iam::111122223333:role/state-reader"
        session_name = "statecrypt"
      }
    }
  }
}

data "statecrypt_remote_state" "network" {
  git {
    repository = "https://gitlab.example.com/acme/tf-state.git"
    ref        = "main"
    path       = "network/terraform.tfstate"
  }
}

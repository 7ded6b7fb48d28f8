terraform {
  required_providers { statecrypt = { source = "statecrypt/statecrypt" } }
}

provider "statecrypt" {
  key_provider {
    gcp_kms {
      kms_encryption_key = "projects/example-project/locations/europe-west1/keyRings/tofu/cryptoKeys/tofu-state"
      key_length         = 32

      # Optional: act as the service account that may decrypt.
      impersonate_service_account = "state-reader@example-project.iam.gserviceaccount.com"
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

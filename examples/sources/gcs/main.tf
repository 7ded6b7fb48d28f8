terraform {
  required_providers { statecrypt = { source = "statecrypt/statecrypt" } }
}

variable "state_passphrase" {
  type      = string
  ephemeral = true
}

provider "statecrypt" {
  key_provider {
    pbkdf2 { passphrase = var.state_passphrase }
  }

  credentials {
    gcs {
      # Optional: act as the service account that may read the bucket.
      impersonate_service_account = "state-reader@example-project.iam.gserviceaccount.com"
    }
  }
}

# Reads gs://example-tf-states/network/production.tfstate.
data "statecrypt_remote_state" "network" {
  gcs {
    bucket = "example-tf-states"
    prefix = "network"
  }
  workspace = "production"
}

output "vpc_id" { value = data.statecrypt_remote_state.network.outputs.vpc_id }

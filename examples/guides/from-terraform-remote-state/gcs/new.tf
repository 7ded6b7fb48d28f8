provider "statecrypt" {
  credentials {
    gcs {
      impersonate_service_account = "state-reader@example-project.iam.gserviceaccount.com"
    }
  }
}

data "statecrypt_remote_state" "network" {
  gcs {
    bucket = "example-tf-states"
    prefix = "network"
  }
  workspace = "production"
  method    = "unencrypted"
}

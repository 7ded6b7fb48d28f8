provider "statecrypt" {
  credentials {
    oci { # the backend's API key does not sign for the S3 API
      access_key = "0123456789abcdef0123456789abcdef01234567"
      secret_key = var.secret_key
    }
  }
}

data "statecrypt_remote_state" "network" {
  oci {
    bucket    = "states"
    namespace = "acmenamespace"
    region    = "eu-frankfurt-1"
    key       = "network/terraform.tfstate"
  }
  method = "unencrypted"
}

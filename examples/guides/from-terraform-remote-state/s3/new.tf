provider "statecrypt" {
  credentials {
    s3 {
      profile = "reader"

      assume_role { role_arn = "arn:aws:iam::111122223333:role/tf-state-reader" }
    }
  }
}

data "statecrypt_remote_state" "network" {
  workspace = "prod"

  s3 {
    bucket = "acme-tf-state"
    key    = "network/terraform.tfstate"
    region = "eu-west-1"
  }

  method = "unencrypted"
}

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
    # Who reads where a data source says nothing else: the credentials of the
    # environment, a profile or the instance assume a role that may only read.
    s3 {
      assume_role { role_arn = "arn:aws:iam::111122223333:role/tf-state-reader" }
    }

    # A store of your own that speaks the protocol of S3.
    s3 {
      name           = "minio"
      use_path_style = true
      profile        = "minio"

      endpoints { s3 = "https://minio.example.com" }
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
}

# This one is not encrypted.
data "statecrypt_remote_state" "lab" {
  s3 {
    bucket           = "lab-tf-state"
    key              = "terraform.tfstate"
    region           = "us-east-1"
    credentials_name = "minio"
  }

  method = "unencrypted"
}

output "vpc_id" { value = data.statecrypt_remote_state.network.outputs.vpc_id }
output "lab_url" { value = data.statecrypt_remote_state.lab.outputs.url }

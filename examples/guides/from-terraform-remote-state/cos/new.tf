provider "statecrypt" {
  credentials {
    cos {
      secret_id  = "AKIDExampleExampleExampleExampleExam"
      secret_key = var.secret_key
    }
  }
}

data "statecrypt_remote_state" "network" {
  cos {
    bucket = "acme-states-1250000000"
    prefix = "network"
    region = "eu-frankfurt"
  }
  method = "unencrypted"
}

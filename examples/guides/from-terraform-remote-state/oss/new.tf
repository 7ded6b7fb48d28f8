provider "statecrypt" {
  credentials {
    oss {
      access_key = "LTAI5tExampleExampleExam"
      secret_key = var.secret_key
    }
  }
}

data "statecrypt_remote_state" "network" {
  oss {
    bucket = "acme-states"
    prefix = "network"
    region = "eu-central-1"
  }
  method = "unencrypted"
}

data "terraform_remote_state" "network" {
  backend = "oss"
  config = {
    bucket     = "acme-states"
    prefix     = "network"
    region     = "eu-central-1"
    access_key = "LTAI5tExampleExampleExam"
    secret_key = var.secret_key
  }
}

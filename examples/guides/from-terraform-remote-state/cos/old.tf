data "terraform_remote_state" "network" {
  backend = "cos"
  config = {
    bucket     = "acme-states-1250000000"
    prefix     = "network"
    region     = "eu-frankfurt"
    secret_id  = "AKIDExampleExampleExampleExampleExam"
    secret_key = var.secret_key
  }
}

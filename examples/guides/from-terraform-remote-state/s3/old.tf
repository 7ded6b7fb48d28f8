data "terraform_remote_state" "network" {
  backend   = "s3"
  workspace = "prod"

  config = {
    bucket  = "acme-tf-state"
    key     = "network/terraform.tfstate"
    region  = "eu-west-1"
    profile = "reader"

    assume_role = {
      role_arn = "arn:aws:iam::111122223333:role/tf-state-reader"
    }
  }
}

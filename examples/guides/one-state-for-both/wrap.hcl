backend "s3" {
  bucket       = "acme-tf-state"
  key          = "network/terraform.tfstate"
  region       = "eu-west-1"
  use_lockfile = true
}

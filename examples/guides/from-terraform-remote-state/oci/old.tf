data "terraform_remote_state" "network" {
  backend = "oci"
  config = {
    bucket    = "states"
    namespace = "acmenamespace"
    region    = "eu-frankfurt-1"
    key       = "network/terraform.tfstate"
  }
}

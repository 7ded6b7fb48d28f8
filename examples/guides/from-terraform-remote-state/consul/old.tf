data "terraform_remote_state" "network" {
  backend = "consul"
  config = {
    address      = "https://consul.example.com:8501"
    access_token = var.token
    datacenter   = "dc1"
    path         = "network"
  }
}

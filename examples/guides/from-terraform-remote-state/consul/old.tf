data "terraform_remote_state" "network" {
  backend   = "consul"
  workspace = "staging"

  config = {
    address      = "consul.example.com:8501"
    scheme       = "https"
    access_token = var.consul_token
    datacenter   = "dc1"
    path         = "network"
  }
}

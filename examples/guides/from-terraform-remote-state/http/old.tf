data "terraform_remote_state" "network" {
  backend = "http"
  config = {
    address  = "https://state.example.com/network"
    username = "ci"
    password = var.token
  }
}

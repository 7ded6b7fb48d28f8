provider "statecrypt" {
  credentials {
    consul {
      address      = "consul.example.com:8501"
      scheme       = "https"
      access_token = var.consul_token
    }
  }
}

data "statecrypt_remote_state" "network" {
  workspace = "staging"

  consul {
    datacenter = "dc1"
    path       = "network"
  }
}

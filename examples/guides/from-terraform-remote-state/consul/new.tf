provider "statecrypt" {
  credentials {
    consul {
      address      = "https://consul.example.com:8501"
      access_token = var.token
    }
  }
}

data "statecrypt_remote_state" "network" {
  consul {
    datacenter = "dc1"
    path       = "network"
  }
  method = "unencrypted"
}

provider "statecrypt" {
  credentials {
    http {
      url      = "https://state.example.com/"
      username = "ci"
      password = var.token
    }
  }
}

data "statecrypt_remote_state" "network" {
  http { address = "https://state.example.com/network" }
  method = "unencrypted"
}

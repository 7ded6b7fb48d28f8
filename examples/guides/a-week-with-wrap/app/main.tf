terraform {
  required_providers { statecrypt = { source = "statecrypt/statecrypt" } }
}

variable "state_password" {
  type      = string
  sensitive = true
}

provider "statecrypt" {
  key_provider {
    age { identity_files = ["~/key.txt"] }
  }

  credentials {
    http {
      url      = "https://states.example.com/net"
      username = "team"
      password = var.state_password
    }
  }
}

data "statecrypt_remote_state" "net" {
  http {
    address = "https://states.example.com/net"
  }
}

output "cidr" { value = data.statecrypt_remote_state.net.outputs.cidr }

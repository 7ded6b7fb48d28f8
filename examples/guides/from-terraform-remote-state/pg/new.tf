provider "statecrypt" {
  credentials {
    pg {
      conn_str = "postgres://ci:${var.token}@db.example.com/terraform?sslmode=verify-full"
    }
  }
}

data "statecrypt_remote_state" "network" {
  pg { schema_name = "infra" }
  workspace = "network"
  method    = "unencrypted"
}

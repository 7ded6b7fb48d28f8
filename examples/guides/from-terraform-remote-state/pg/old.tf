data "terraform_remote_state" "network" {
  backend   = "pg"
  workspace = "network"
  config = {
    conn_str    = "postgres://ci:${var.token}@db.example.com/terraform?sslmode=verify-full"
    schema_name = "infra"
  }
}

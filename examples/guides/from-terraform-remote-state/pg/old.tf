data "terraform_remote_state" "network" {
  backend   = "pg"
  workspace = "network"
  config = {
    conn_str    = "postgres://state_reader:${var.token}@db.example.com/terraform?sslmode=verify-full"
    schema_name = "infra"
  }
}

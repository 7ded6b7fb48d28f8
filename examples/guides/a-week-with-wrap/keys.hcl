backend "http" {
  address        = "https://states.example.com/net"
  lock_address   = "https://states.example.com/net/lock"
  unlock_address = "https://states.example.com/net/lock"
  username       = "team"
  password       = var.state_password
}

key_provider "age" "team" {
  recipients     = compact(split("\n", file("team.txt")))
  identity_files = ["~/key.txt"]
}

method "aes_gcm" "team" {
  keys = key_provider.age.team
}

state {
  method = method.aes_gcm.team
}

plan {
  method = method.aes_gcm.team
}

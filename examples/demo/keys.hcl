backend "file" {
  path = "${module}.tfstate"
}

key_provider "pbkdf2" "demo" {
  passphrase = var.state_passphrase
}

method "aes_gcm" "demo" {
  keys = key_provider.pbkdf2.demo
}

state {
  method = method.aes_gcm.demo
}

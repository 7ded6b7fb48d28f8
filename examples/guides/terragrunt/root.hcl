generate "backend" {
  path      = "backend.tf"
  if_exists = "overwrite"
  contents  = <<-EOT
    terraform {
      backend "http" {}
    }
  EOT
}

generate "keys" {
  path      = "keys.hcl"
  if_exists = "overwrite"
  contents  = <<-EOT
    backend "git" {
      repository = "https://git.example.com/acme/states.git"
      ref        = "main"
      path       = "${path_relative_to_include()}.tfstate"
    }

    key_provider "pbkdf2" "main" {
      passphrase = var.state_passphrase
    }

    method "aes_gcm" "main" {
      keys = key_provider.pbkdf2.main
    }

    state {
      method = method.aes_gcm.main
    }
  EOT
}

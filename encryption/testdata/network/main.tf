# OpenTofu wrote terraform.tfstate here, with as few iterations as it allows, for
# the examples of the package.

terraform {
  encryption {
    key_provider "pbkdf2" "main" {
      passphrase    = "correct-horse-battery-staple"
      iterations    = 200000
      hash_function = "sha256"
    }
    method "aes_gcm" "main" {
      keys = key_provider.pbkdf2.main
    }
    state {
      method = method.aes_gcm.main
    }
  }
}

output "vpc_id" {
  value = "vpc-0a1b2c3d4e5f"
}

terraform {
  required_providers { statecrypt = { source = "statecrypt/statecrypt" } }
}

# In the environment: TF_VAR_passphrases={"network":"…","archive":"…"}
variable "passphrases" {
  type      = map(string)
  ephemeral = true
}

locals {
  states = toset(["network", "archive"])
}

provider "statecrypt" {
  key_provider {
    dynamic "pbkdf2" {
      for_each = local.states
      content {
        name       = pbkdf2.key
        passphrase = var.passphrases[pbkdf2.key]
      }
    }
  }

  method {
    dynamic "aes_gcm" {
      for_each = local.states
      content {
        name = aes_gcm.key
        keys = "key_provider.pbkdf2.${aes_gcm.key}"
      }
    }
  }
}

data "statecrypt_remote_state" "all" {
  for_each = local.states

  file { path = "${each.key}.tfstate" }
  method = "method.aes_gcm.${each.key}"
}

output "vpc_id" { value = data.statecrypt_remote_state.all["network"].outputs.vpc_id }
output "archived_vpc_id" { value = data.statecrypt_remote_state.all["archive"].outputs.vpc_id }

variable "secret" {
  type      = string
  sensitive = true
}

resource "terraform_data" "counted" {
  count = 3
  input = { i = count.index }
}

resource "terraform_data" "keyed" {
  for_each         = { a = true, "b/ü.$${q}\"" = false }
  triggers_replace = each.value ? { password = var.secret, list = [1, var.secret], type = var.secret } : null
}

data "terraform_remote_state" "other" {
  count    = 1
  backend  = "local"
  config   = { path = "${path.root}/none.tfstate" }
  defaults = { a = var.secret }
}

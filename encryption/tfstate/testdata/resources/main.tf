# The states in this folder were written from this configuration, by
#   apply; taint module.net["a"].terraform_data.counted[0];
#   state rm 'module.net["a"].terraform_data.counted[1]'
# and show.json is what "show -json" of the same program prints.

variable "secret" {
  type      = string
  default   = "s3cr3t-canary"
  sensitive = true
}

module "net" {
  source   = "./m"
  for_each = toset(["a", "b/ü.$${q}\""])
  secret   = var.secret
}

module "list" {
  source = "./m"
  count  = 1
  secret = var.secret
}

resource "terraform_data" "single" {
  input            = "plain"
  triggers_replace = [var.secret, 1.5]
}

resource "terraform_data" "open" {
  input = [true, null, 12345678901234567890.5, { a = [] }]
}

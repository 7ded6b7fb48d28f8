variable "secret" {
  sensitive = true
  default   = "c4n4ry"
}
resource "terraform_data" "plain" { input = "open" }
resource "terraform_data" "marked" {
  for_each         = toset(["a b", "é"])
  input            = { user = "u", password = var.secret }
  triggers_replace = var.secret
}
module "m" {
  count  = 2
  source = "./m"
  secret = var.secret
}
check "health" {
  assert {
    condition     = terraform_data.plain.output == "closed"
    error_message = "the secret is ${nonsensitive(var.secret)}"
  }
}
check "fine" {
  assert {
    condition     = terraform_data.plain.output == "open"
    error_message = "never"
  }
}
output "open" { value = { list = [1, 2], name = "n" } }
output "password" {
  value     = { (nonsensitive(var.secret)) = var.secret }
  sensitive = true
}
output "names" { value = tolist(["a"]) }

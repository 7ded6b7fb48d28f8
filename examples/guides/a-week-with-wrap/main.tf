variable "cidr" {
  type    = string
  default = "10.0.0.0/16"
}

resource "terraform_data" "vpc" {
  input = var.cidr
}

output "cidr" { value = terraform_data.vpc.output }

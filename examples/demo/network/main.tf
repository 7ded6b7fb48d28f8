# Its state is written by "statecrypt wrap", to an HTTP backend.

terraform {
  backend "http" {}
}

output "vpc_id" {
  value = "vpc-of-the-second-half"
}

output "subnets" {
  value = { a = { id = "subnet-a" } }
}

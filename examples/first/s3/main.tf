data "statecrypt_remote_state" "network" {
  s3 {
    bucket = "acme-states"
    key    = "network/terraform.tfstate"
    region = "eu-west-1"
  }
}

output "vpc_id" { value = data.statecrypt_remote_state.network.outputs.vpc_id }

provider "statecrypt" {
  default {
    method = "unencrypted"
  }
}

run "with_a_real_file" {
  command = plan

  variables {
    state = "testdata/network.tfstate"
  }

  assert {
    condition     = output.vpc_id == "vpc-file"
    error_message = "The VPC must be that of the file."
  }
}

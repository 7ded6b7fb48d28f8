mock_provider "statecrypt" {
  mock_data "statecrypt_remote_state" {
    defaults = {
      outputs = { vpc_id = "vpc-mock" }
    }
  }
}

run "with_mocked_reads" {
  command = plan

  assert {
    condition     = output.vpc_id == "vpc-mock"
    error_message = "The VPC must be the mocked one."
  }
}

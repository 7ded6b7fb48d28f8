run "with_a_given_state" {
  command = plan

  override_data {
    target = data.statecrypt_remote_state.network
    values = {
      outputs = { vpc_id = "vpc-test" }
    }
  }

  assert {
    condition     = output.vpc_id == "vpc-test"
    error_message = "The VPC must be that of the network's state."
  }
}

provider "statecrypt" {
  default {
    method = "unencrypted"
  }
}

run "with_a_real_file" {
  command = plan

  variables {
    state = "testdata/database.tfstate"
  }
}

run "with_a_short_password" {
  command = plan

  variables {
    state = "testdata/short.tfstate"
  }

  expect_failures = [terraform_data.database]
}

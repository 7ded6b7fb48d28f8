remote_state_data_sources {
  remote_state_data_source "again" {
    method = method.aes_gcm.m
  }
  remote_state_data_source "more" {
    method = method.aes_gcm.m
  }
}

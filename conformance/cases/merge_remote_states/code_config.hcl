key_provider "pbkdf2" "k" {
  passphrase = "correct-horse-battery-staple"
}
method "aes_gcm" "m" {
  keys = key_provider.pbkdf2.k
}
key_provider "pbkdf2" "bad" {
  passphrase = "mid-throwaway-passphrase-x"
}
method "aes_gcm" "bad" {
  keys = key_provider.pbkdf2.bad
}
remote_state_data_sources {
  default {
    method = method.aes_gcm.bad
  }
  remote_state_data_source "root" {
    method = method.aes_gcm.m
  }
  remote_state_data_source "again" {
    method = method.aes_gcm.bad
  }
}

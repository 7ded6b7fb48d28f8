method "unencrypted" "u" {
}
state {
  method = method.aes_gcm.m
  fallback {
    method = method.unencrypted.u
  }
}

key_provider "pbkdf2" "new" {
  passphrase = "new-throwaway-passphrase"
}
method "aes_gcm" "new" {
  keys = key_provider.pbkdf2.new
}
key_provider "pbkdf2" "old" {
  passphrase = "old-throwaway-passphrase"
  iterations = 1
}
method "aes_gcm" "old" {
  keys = key_provider.pbkdf2.old
}
state {
  method = method.aes_gcm.new
  fallback {
    method = method.aes_gcm.old
  }
}

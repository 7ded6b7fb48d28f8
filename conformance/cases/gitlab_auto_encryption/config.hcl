method "unencrypted" "gitlab_tofu_auto_encryption_migrate" {}

key_provider "pbkdf2" "gitlab_tofu_auto_encryption" {
  passphrase = "a throwaway passphrase of a pipeline"
}

method "aes_gcm" "gitlab_tofu_auto_encryption" {
  keys = key_provider.pbkdf2.gitlab_tofu_auto_encryption
}

state {
  method = method.aes_gcm.gitlab_tofu_auto_encryption

  fallback {
    method = method.unencrypted.gitlab_tofu_auto_encryption_migrate
  }
}

plan {
  method = method.aes_gcm.gitlab_tofu_auto_encryption

  fallback {
    method = method.unencrypted.gitlab_tofu_auto_encryption_migrate
  }
}

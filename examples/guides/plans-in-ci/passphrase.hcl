key_provider "pbkdf2" "plans" {
  passphrase = var.plan_passphrase
}

method "aes_gcm" "plans" {
  keys = key_provider.pbkdf2.plans
}

plan {
  method   = method.aes_gcm.plans
  enforced = true
}

key_provider "age" "plans" {
  identities = [var.plan_identity]
}

method "aes_gcm" "plans" {
  keys = key_provider.age.plans
}

plan {
  method = method.aes_gcm.plans
}

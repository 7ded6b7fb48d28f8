key_provider "age" "plans" {
  recipients = compact(split("\n", file("team.txt")))
}

method "aes_gcm" "plans" {
  keys = key_provider.age.plans
}

plan {
  method = method.aes_gcm.plans
}

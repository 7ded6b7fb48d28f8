key_provider "age" "team" {
  recipients = compact(split("\n", file("team.txt")))
}
method "aes_gcm" "team" {
  keys = key_provider.age.team
}
plan {
  method = method.aes_gcm.team
}

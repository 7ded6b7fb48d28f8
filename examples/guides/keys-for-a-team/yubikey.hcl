key_provider "age" "team" {
  recipients     = compact(split("\n", file("team.txt")))
  identity_files = ["yubikey.txt"]
}
method "aes_gcm" "team" {
  keys = key_provider.age.team
}
state {
  method = method.aes_gcm.team
}

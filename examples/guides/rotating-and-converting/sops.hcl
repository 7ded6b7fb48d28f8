method "sops" "old" {
  age_identity_files = ["~/.config/sops/age/keys.txt"]
}

state {
  method = method.sops.old
}

method "terraform_backend_git" "old" {
  passphrase = var.old_passphrase
}

state {
  method = method.terraform_backend_git.old
}

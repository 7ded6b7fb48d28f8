provider "statecrypt" {
  default { method = "unencrypted" }
}

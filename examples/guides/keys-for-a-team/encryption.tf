terraform {
  encryption {
    key_provider "external" "team" {
      command = ["statecrypt", "key-provider", "age", "-R", "team.txt", "-i", "key.txt"]
    }
    method "aes_gcm" "team" {
      keys = key_provider.external.team
    }
    state {
      method   = method.aes_gcm.team
      enforced = true
    }
  }
}

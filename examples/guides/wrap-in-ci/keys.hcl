backend "git" {
  repository = "https://github.com/acme/states.git"
  ref        = "main"
  path       = "net.tfstate"
}

key_provider "age" "state" {
  recipients = compact(split("\n", file("team.txt")))
  identities = [var.state_identity]
}

key_provider "age" "plan" {
  recipients = compact(split("\n", file("apply.txt")))
  identities = compact([var.plan_identity])
}

method "aes_gcm" "state" {
  keys = key_provider.age.state
}

method "aes_gcm" "plan" {
  keys = key_provider.age.plan
}

state {
  method = method.aes_gcm.state
}

plan {
  method = method.aes_gcm.plan
}

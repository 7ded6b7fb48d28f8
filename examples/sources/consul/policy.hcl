# Reads the state network and all of its workspaces, and nothing else.
key "network" {
  policy = "read"
}

key_prefix "network/tfstate." {
  policy = "read"
}

key_prefix "network-env:" {
  policy = "read"
}

provider "statecrypt" {
  credentials {
    kubernetes {
      config_path = "~/.kube/config"
    }
  }
}

data "statecrypt_remote_state" "network" {
  kubernetes {
    namespace     = "infra"
    secret_suffix = "network"
  }
  method = "unencrypted"
}

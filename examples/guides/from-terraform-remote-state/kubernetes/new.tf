provider "statecrypt" {
  credentials {
    kubernetes {
      config_path    = "~/.kube/config"
      config_context = "state-reader"
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

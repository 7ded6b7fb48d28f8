data "terraform_remote_state" "network" {
  backend = "kubernetes"
  config = {
    namespace      = "infra"
    secret_suffix  = "network"
    config_path    = "~/.kube/config"
    config_context = "state-reader"
  }
}

# A state that GitLab manages. The token is in the provider's credentials.
data "statecrypt_remote_state" "cluster" {
  http { address = "https://gitlab.example.com/api/v4/projects/42/terraform/state/cluster" }

  only       = ["endpoint", "region"]
  on_missing = "defaults"
  defaults = {
    endpoint = null
    region   = "eu-west-1"
  }
}

data "terraform_remote_state" "network" {
  backend   = "gcs"
  workspace = "production"
  config = {
    bucket                      = "example-tf-states"
    prefix                      = "network"
    impersonate_service_account = "state-reader@example-project.iam.gserviceaccount.com"
  }
}

# A team whose token may read the states of one workspace, and nothing else.
# It is for whoever manages the organization with the tfe provider.
terraform {
  required_providers {
    tfe = {
      source = "hashicorp/tfe"
    }
  }
}

data "tfe_workspace" "network" {
  organization = "acme"
  name         = "network"
}

resource "tfe_team" "state_reader" {
  organization = "acme"
  name         = "state-reader"
}

resource "tfe_team_access" "state_reader" {
  team_id      = tfe_team.state_reader.id
  workspace_id = data.tfe_workspace.network.id

  permissions {
    state_versions    = "read" # "read-outputs" is enough for outputs_only
    runs              = "read" # the least that there is
    variables         = "none"
    sentinel_mocks    = "none"
    workspace_locking = false
    run_tasks         = false
  }
}

resource "tfe_team_token" "state_reader" {
  team_id = tfe_team.state_reader.id
}

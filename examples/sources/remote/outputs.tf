# The outputs alone, with a token that may read no more. They are in plain text.
data "statecrypt_remote_state" "dns" {
  remote {
    organization = "acme"
    outputs_only = true

    workspaces { name = "dns" }
  }
  method = "unencrypted"
}

output "zone_id" { value = data.statecrypt_remote_state.dns.outputs.zone_id }

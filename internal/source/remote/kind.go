// Package remote reads a state from HCP Terraform, Terraform Enterprise or
// another service with their API: where the backends remote and cloud keep
// states.
//
// A data source, which any module can write, names the host. Tokens belong to
// the provider block, the environment and the CLI's own files, and each of them
// to a host. So every request, each redirect included, looks up what its own URL
// may have: see [location.tokenFor].
//
// https://developer.hashicorp.com/terraform/cloud-docs/api-docs/state-versions
// https://developer.hashicorp.com/terraform/internals/remote-service-discovery
package remote

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// Kind is the remote source. There is no second one for the cloud backend: the
// states of both are the same, in the same places.
func Kind() source.Kind {
	return source.Kind{Table: table(), Credentials: credentials(), Workspaces: true, Start: start}
}

func table() attr.Table {
	return attr.Table{
		Name: "remote",
		Doc: "Reads the state of a workspace in HCP Terraform, Terraform Enterprise or another service with their API, which the backends " +
			"`remote` and `cloud` write. " +
			"Only `GET` requests are sent, and nothing is locked or created. The token is set in `credentials`, in the provider block; " +
			"without one there, those of the Terraform and OpenTofu CLIs are used.",
		Attrs: []attr.Attr{
			{Name: "hostname", Type: cty.String, Env: []string{"TF_CLOUD_HOSTNAME"}, Default: cty.StringVal("app.terraform.io"),
				Doc: "The host of the service, with a port where it has one. Defaults to `app.terraform.io`, as in Terraform. OpenTofu's backends " +
					"have no default."},
			{Name: "organization", Type: cty.String, Required: true, Env: []string{"TF_CLOUD_ORGANIZATION"},
				Doc: "The organization that the workspace belongs to."},
			{
				Name: "workspaces",
				Doc: "How the name of the workspace is found. Without this block, `workspace` is the whole name, as for the `cloud` backend with " +
					"`tags`.",
				Attrs: []attr.Attr{
					{Name: "name", Type: cty.String, Doc: "The name of the workspace. `workspace` is then left out."},
					{Name: "prefix", Type: cty.String,
						Doc: "What is put before `workspace`, unless that begins with it. There is no workspace `default` then."},
				},
			},
			{Name: "state_version", Type: cty.String,
				Doc: "The ID of the state version to read, such as `sv-g4rqST72reoHMM5a`, instead of the current one. It must be one of this " +
					"workspace."},
			{Name: "outputs_only", Type: cty.Bool,
				Doc: "Asks the service for the outputs instead of the state, for a token that may read no more than outputs. " +
					"They are in plain text, so `method` must allow `unencrypted`; serial and lineage are not known. Defaults to `false`."},
		},
	}
}

// credentials has the token of a host from variables, which name the host.
func credentials(variables ...string) attr.Table {
	return attr.Table{
		Name: "remote",
		Doc: "The token for a service with the API of HCP Terraform, and how to connect to it. " +
			"A block without `token`, or no block, leaves the token to the variable `TF_TOKEN_<host>` (`TF_TOKEN_app_terraform_io`) and then to " +
			"the files of the CLIs: " +
			"the one that `TF_CLI_CONFIG_FILE` names, or `credentials.tfrc.json`, which `terraform login` and `tofu login` write, `.tofurc` and " +
			"`.terraformrc`. Credentials helpers are not run.",
		Attrs: []attr.Attr{
			{Name: "url", Type: cty.String, Required: true,
				Doc: "What the block is for: `https://app.terraform.io/` is for all workspaces of that host, and for whatever else is asked there. " +
					"`https://app.terraform.io/app/acme/` is for those of the organization `acme`, and " +
					"`https://app.terraform.io/app/acme/workspaces/network` for one, as a browser shows them. " +
					"Of several blocks the longest path wins."},
			{Name: "token", Type: cty.String, Sensitive: true, Env: variables,
				Doc: "An API token of a team or user. It is sent only to the host of `url`."},
			{Name: "client_ca_certificate_pem", Type: cty.String, Guard: true,
				Doc: "The certificates in PEM format that the host's certificate is verified with, instead of those of the system."},
			{Name: "skip_cert_verification", Type: cty.Bool, Guard: true,
				Doc: "Accepts any certificate, so that anybody on the way can read the token and replace the state. Each read warns of it. " +
					"Defaults to `false`."},
			{Name: "proxy", Type: cty.String, Sensitive: true, Guard: true,
				Doc: "The URL of the proxy to use: `http`, `https` or `socks5`, with a user name and password where it needs them. " +
					"Without it, `HTTPS_PROXY` and `NO_PROXY` apply."},
		},
	}
}

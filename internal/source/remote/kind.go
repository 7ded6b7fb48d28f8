// Package remote reads a state that the remote or cloud backend keeps in HCP Terraform, Terraform Enterprise
// or another service with the same API.
//
// The host is named by a data source, which any module can write. Tokens come from the root module, the
// environment and the CLI's own files, and each token belongs to one host. For this reason, the token is
// looked up for each request by its own URL, even after a redirect; see [location.tokenFor].
//
// https://developer.hashicorp.com/terraform/cloud-docs/api-docs/state-versions
// https://developer.hashicorp.com/terraform/internals/remote-service-discovery
package remote

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// Kind returns the remote source. It also reads states of the cloud backend, because both backends keep
// states in the same places.
func Kind() source.Kind {
	return source.Kind{Table: table(), Credentials: credentials(), Workspaces: true, Patience: source.Patience, Begin: start}
}

func table() attr.Table {
	return attr.Table{
		Name: "remote",
		Doc: "Reads the state of a workspace in HCP Terraform, Terraform Enterprise or a service with their API, with `GET` requests only. " +
			"The token is set in `credentials`, or is that of the CLIs.",
		Attrs: []attr.Attr{
			{Name: "hostname", Type: cty.String, Env: []string{"TF_CLOUD_HOSTNAME"}, Default: cty.StringVal("app.terraform.io"),
				Check: attr.Is(isHost, "this is not the name of a host; write a name like app.terraform.io or tfe.example.com:8443, without https:// "+
					"and without a path"),
				Doc: "The host of the service, with its port unless that is 443. Defaults to `app.terraform.io`, as in Terraform. OpenTofu's " +
					"backends " +
					"have no default."},
			{Name: "organization", Type: cty.String, Required: true, Env: []string{"TF_CLOUD_ORGANIZATION"},
				Check: attr.Is(isName, "this is not a valid organization name; copy the name from the organization's address (acme in "+
					"app.terraform.io/app/acme)"),
				Doc: "The organization that the workspace belongs to."},
			{
				Name: "workspaces",
				Doc: "How the name of the workspace is found. Without this block, `workspace` is the whole name, as for the `cloud` backend with " +
					"`tags`.",
				Attrs: []attr.Attr{
					{Name: "name", Type: cty.String, Required: true, Excludes: []string{"prefix"},
						Doc: "The name of the only workspace. The argument `workspace` is then left out."},
					{Name: "prefix", Type: cty.String,
						Doc: "The prefix of the names of the workspaces. It is put before `workspace`, unless that begins with it. There is no workspace " +
							"`default` then."},
				},
			},
			{Name: "state_version", Type: cty.String, Form: attr.Version,
				Check: attr.Is(isVersion, "this is not the ID of a state version; write an ID like sv-g4rqST72reoHMM5a"),
				Doc: "The ID of the state version to read, such as `sv-g4rqST72reoHMM5a`, instead of the current one. It must be one of this " +
					"workspace."},
			{Name: "outputs_only", Type: cty.Bool, Excludes: []string{"state_version"},
				Doc: "Requests the outputs instead of the state, for a token that may read only outputs. They are plaintext, so `method` must " +
					"allow `unencrypted`. Defaults to `false`."},
		},
	}
}

// credentials returns the table for a credentials block. The default for its token comes from the given
// variables, whose names contain a host.
func credentials(variables ...string) attr.Table {
	return attr.Table{
		Name: "remote",
		Doc: "The token for a service with the API of HCP Terraform, and how to connect to it. The default is `TF_TOKEN_<host>`, then the " +
			"files of the CLIs, such as those that `terraform login` writes.",
		Attrs: []attr.Attr{
			{Name: "url", Type: cty.String, Required: true,
				Doc: "The URL that the block covers: `https://app.terraform.io/` for a host, `…/app/acme/` for an organization, or " +
					"`…/app/acme/workspaces/network` for a workspace. The block with the longest path is used."},
			{Name: "token", Type: cty.String, Form: attr.Token, Secrecy: attr.Secret, Env: variables,
				Doc: "An API token of a team or user. It is sent only to the host of `url`. Defaults to `TF_TOKEN_<host>`."},
			{Name: "client_ca_certificate_pem", Type: cty.String, Check: attr.Text(web.CheckAuthorities),
				Doc: "The certificates in PEM format that the host's certificate is verified with, instead of those of the system."},
			{Name: "skip_cert_verification", Type: cty.Bool,
				Doc: "Accepts any certificate, so that anyone on the network path can read the token and replace the state. Each read warns of it. " +
					"Defaults to `false`."},
			{Name: "proxy", Type: cty.String, Secrecy: attr.LocalSecret, Check: attr.Text(web.CheckProxy),
				Doc: "The URL of the proxy to use: `http`, `https` or `socks5`, with a user name and password if it needs them. " +
					"Without it, `HTTPS_PROXY` and `NO_PROXY` apply."},
		},
	}
}

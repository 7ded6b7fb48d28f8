// Package consul reads a state that Terraform's consul backend has written to Consul's key-value store. The
// state is in one value, or in several if it is large. Every request is a GET of one key; none lists, waits
// or locks.
//
// https://github.com/opentofu/opentofu/tree/v1.12.6/internal/backend/remote-state/consul
// https://github.com/hashicorp/terraform/tree/main/internal/backend/remote-state/consul
package consul

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/harmless"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// Kind returns the consul source.
func Kind() source.Kind {
	return source.Kind{Table: table(), Credentials: credentials(), Home: home(), Workspaces: true, Patience: source.Patience, Begin: start}
}

// home says that the variables are meant for the server in CONSUL_HTTP_ADDR. The scheme, which
// CONSUL_HTTP_SSL can set, does not matter.
func home() source.Home {
	return source.Home{Vars: []string{"CONSUL_HTTP_ADDR"}, Attrs: []string{"address"}, Compare: near}
}

func table() attr.Table {
	return attr.Table{
		Name: "consul",
		Doc: "Reads the state from a key of Consul, as the `consul` backend writes it, with `GET` requests only. How to reach Consul is " +
			"set in `credentials`, in the provider block.",
		Attrs: []attr.Attr{
			{Name: "path", Type: cty.String, Required: true, Form: attr.Path, Check: attr.Text(checkPath),
				Doc: "The key of the state. For a workspace other than `default`, `-env:` and the name of the workspace follow it."},
			{Name: "datacenter", Type: cty.String, Doc: "The datacenter to ask. Defaults to that of the agent."},
			{Name: "namespace", Type: cty.String,
				Doc: "The namespace of the key, in Consul Enterprise. Defaults to that of the token, or to `CONSUL_NAMESPACE` if the " +
					"environment names the server."},
			{Name: "partition", Type: cty.String,
				Doc: "The admin partition of the key, in Consul Enterprise. Defaults to that of the agent, or to `CONSUL_PARTITION` if the " +
					"environment names the server."},
			source.ChoiceAttr("credentials_name", "consul", "that says how to reach Consul"),
		},
	}
}

// credentials returns a table with the variables of Consul's own programs, which the backend also reads. It
// leaves out CONSUL_CAPATH, because a file can contain many certificates, and variables such as
// CONSUL_GRPC_ADDR, because the store is not served over gRPC.
func credentials() attr.Table {
	return attr.Table{
		Name: "consul",
		Doc:  "How to reach Consul, with the arguments of the `consul` backend. The variables `CONSUL_*` fill only the block without a name.",
		Attrs: []attr.Attr{
			source.NameAttr("credentials_name"),
			{Name: "address", Type: cty.String, Env: []string{"CONSUL_HTTP_ADDR"},
				Doc: "The agent or server: `host:port`, a URL, which may have a path for a proxy, or `unix://` with the path of a " +
					"socket. Defaults to `localhost:8500`."},
			{Name: "scheme", Type: cty.String, Group: "scheme",
				Doc: "`http` or `https`, for an `address` without a scheme. Defaults to `http`, or to `https` if `CONSUL_HTTP_SSL` is `true`."},
			{Name: "access_token", Type: cty.String, Form: attr.Token, Group: "token", Secrecy: attr.Secret, Harmless: harmless.Secret,
				Env: []string{"CONSUL_HTTP_TOKEN"},
				Doc: "The ACL token. It requires permission to read the key."},
			{Name: "token_file", Type: cty.String, Secrecy: attr.NamesSecret, Group: "token", Excludes: []string{"access_token"},
				Harmless: harmless.Secret,
				Env:      []string{"CONSUL_HTTP_TOKEN_FILE"},
				Doc:      "A file with the ACL token. Its variable takes precedence over that of `access_token`."},
			{Name: "http_auth", Type: cty.String, Secrecy: attr.Secret, Harmless: harmless.Secret, Env: []string{"CONSUL_HTTP_AUTH"},
				Check: attr.Is(hasColon, "the value has no colon; write the user name and the password with a colon between them"),
				Doc:   "The user name and password for basic authentication, with a colon between them. Only a proxy before Consul uses them."},
			{Name: "ca_file", Type: cty.String, Form: attr.OrEmpty, Env: []string{"CONSUL_CACERT"},
				Doc: "A file with the certificates in PEM format that the server's certificate is verified with, instead of those of the system."},
			{Name: "cert_file", Type: cty.String, Group: "certificate", RequiredWith: "key_file", Env: []string{"CONSUL_CLIENT_CERT"},
				Harmless: "A certificate is shown to whatever server the code names, and proves nothing without its key.",
				Doc:      "A file with the client's certificate in PEM format. It needs `key_file`."},
			{Name: "key_file", Type: cty.String, Secrecy: attr.NamesSecret, Group: "certificate", RequiredWith: "cert_file",
				Harmless: harmless.Secret, Env: []string{"CONSUL_CLIENT_KEY"},
				Doc: "A file with the private key of `cert_file` in PEM format."},
			{Name: "tls_server_name", Type: cty.String, Form: attr.OrEmpty, Env: []string{"CONSUL_TLS_SERVER_NAME"},
				Doc: "The name that the server's certificate must have, instead of the name of the host."},
			{Name: "ssl_verify", Type: cty.Bool, Env: []string{"CONSUL_HTTP_SSL_VERIFY"},
				Harmless: "Certificates are then verified, as they are without it.", HarmlessIf: harmless.True,
				Doc: "Whether to verify the server's certificate. Without it anyone on the network path can read the token and replace the " +
					"state; each " +
					"read warns of it. Defaults to `true`."},
		},
		Variables: []attr.Attr{
			{Name: sslVar, Type: cty.Bool, Env: []string{sslVar}, StandsFor: "scheme", UnlessGroup: "scheme",
				Harmless: "It can switch TLS on, but not off: an address that begins with https stays so."},
			source.Variable(namespaceVar, "namespace", "It names a part of the server's keys, and not the server."),
			source.Variable(partitionVar, "partition", "It names a part of the server's keys, and not the server."),
		},
	}
}

// These variables have no attribute of the same type.
const (
	sslVar       = "CONSUL_HTTP_SSL"
	namespaceVar = "CONSUL_NAMESPACE"
	partitionVar = "CONSUL_PARTITION"
)

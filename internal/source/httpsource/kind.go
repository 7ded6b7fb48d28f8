// Package httpsource reads a state from the server that Terraform's http backend writes to.
//
// The address is named by a data source, which any module can write. The secrets come from the root module
// and the environment. For this reason, the credentials are looked up for each request by its own URL, even
// after a redirect; see [exchange.RoundTrip].
package httpsource

import (
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/harmless"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// Kind returns the http source.
func Kind() source.Kind {
	return source.Kind{Table: table(), Credentials: credentials(), Home: source.Home{Vars: []string{"TF_HTTP_ADDRESS"}}, Begin: start}
}

func table() attr.Table {
	return attr.Table{
		Name: "http",
		Doc: "Reads the state with one `GET` from a server for the `http` backend, such as GitLab. `204` and `404` mean that there is no " +
			"state. Credentials are set in `credentials`, in the provider block.",
		Attrs: []attr.Attr{
			{Name: "address", Type: cty.String, Required: true, Env: []string{"TF_HTTP_ADDRESS"}, Check: attr.Text(checkAddress),
				Doc: "The `http` or `https` URL of the state. User names, passwords and tokens do not belong in it."},
			{Name: "timeout", Type: cty.String,
				Check: attr.Text(func(text string) error { _, err := parseTimeout(text); return err }),
				Doc: "How long one try may take, from the connection to the last byte: seconds, or a duration such as `\"2m30s\"`. Defaults to 60 " +
					"seconds."},
			{Name: "retry_max", Type: cty.Number, Check: attr.Between(0, mostTries),
				Doc: "How many times a failed try is repeated: after a lost connection, a timeout, `429`, and any `5xx` except `501`. " +
					"Defaults to 2, or to `TF_HTTP_RETRY_MAX` if the variables of `credentials` apply."},
			{Name: "retry_wait_min", Type: cty.Number, Check: attr.Between(0, mostWait),
				Doc: "Seconds to wait before the first repetition; each further wait is twice as long. " +
					"Defaults to 1, or to `TF_HTTP_RETRY_WAIT_MIN` if the variables of `credentials` apply."},
			{Name: "retry_wait_max", Type: cty.Number, Check: attr.Between(0, mostWait),
				Doc: "The longest wait in seconds, even if the server requires a longer one in `Retry-After`. " +
					"Defaults to 30, or to `TF_HTTP_RETRY_WAIT_MAX` if the variables of `credentials` apply."},
		},
	}
}

func credentials() attr.Table {
	return attr.Table{
		Name: "http",
		Doc:  "Credentials and connection settings for an HTTP server. They are used only for addresses and redirects that `url` covers.",
		Attrs: []attr.Attr{
			{Name: "url", Type: cty.String, Required: true,
				Doc: "The URL that the block covers. It covers addresses with the same scheme, host and port, and with this path or a path below it. " +
					"Of several blocks, the one with the longest path is used."},
			{Name: "username", Type: cty.String, UnlessGroup: "authorization", Env: []string{"TF_HTTP_USERNAME"},
				Harmless: "A user name proves nothing, and the password beside it goes nowhere but where url says.",
				Doc:      "The user name for basic authentication."},
			{Name: "password", Type: cty.String, Secrecy: attr.Secret, UnlessGroup: "authorization", Env: []string{"TF_HTTP_PASSWORD"},
				Harmless: harmless.Secret,
				Doc:      "The password or access token for basic authentication."},
			{Name: "bearer_token", Type: cty.String, Form: attr.Token, Secrecy: attr.Secret, Group: "authorization",
				Doc: "A token, sent as `Authorization: Bearer …`. It excludes `username` and `password`."},
			{Name: "headers", Type: cty.Map(cty.String), Secrecy: attr.Secret,
				Doc: "Further request headers, such as GitLab's `PRIVATE-TOKEN` or `JOB-TOKEN`."},
			{Name: "query", Type: cty.Map(cty.String), Secrecy: attr.Secret,
				Doc: "Secret parts of the query. They are added to the URL as it is sent, and appear in no message."},
			{Name: "client_certificate_pem", Type: cty.String, Group: "certificate", RequiredWith: "client_private_key_pem",
				Env: []string{"TF_HTTP_CLIENT_CERTIFICATE_PEM"}, Check: attr.Text(recognize.CheckPEM),
				Harmless: "A certificate is shown only where url says, and proves nothing without its key.",
				Doc:      "The client's certificate in PEM format, sent to servers that request one. It needs `client_private_key_pem`."},
			{Name: "client_private_key_pem", Type: cty.String, Secrecy: attr.Secret, Form: attr.Lines, Group: "certificate",
				RequiredWith: "client_certificate_pem", Env: []string{"TF_HTTP_CLIENT_PRIVATE_KEY_PEM"},
				Harmless: harmless.Secret, Check: attr.Text(recognize.CheckPEM),
				Doc: "The private key of `client_certificate_pem` in PEM format."},
			{Name: "client_ca_certificate_pem", Type: cty.String, Form: attr.OrEmpty, Env: []string{"TF_HTTP_CLIENT_CA_CERTIFICATE_PEM"},
				Check: attr.Text(web.CheckAuthorities),
				Doc:   "The certificates in PEM format that the server's certificate is verified with, instead of those of the system."},
			{Name: "skip_cert_verification", Type: cty.Bool, Env: []string{"TF_HTTP_SKIP_CERT_VERIFICATION"},
				Harmless: "Certificates are then verified, as they are without it.", HarmlessIf: harmless.False,
				Doc: "Accepts any certificate, so that anyone on the network path can read the secrets and replace the state. Each read warns of it. " +
					"Defaults to `false`."},
			{Name: "proxy", Type: cty.String, Secrecy: attr.LocalSecret, Check: attr.Text(web.CheckProxy),
				Doc: "The URL of the proxy to use: `http`, `https` or `socks5`, with a user name and password if it needs them. " +
					"Without it, `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` apply."},
		},
		Variables: []attr.Attr{number(triesVar, "retry_max"), number(waitMinVar, "retry_wait_min"), number(waitMaxVar, "retry_wait_max")},
	}
}

const (
	mostTries = 100
	mostWait  = 3600 // seconds

	triesVar   = "TF_HTTP_RETRY_MAX"
	waitMinVar = "TF_HTTP_RETRY_WAIT_MIN"
	waitMaxVar = "TF_HTTP_RETRY_WAIT_MAX"
)

// number returns an attribute for a variable that holds a number. The number is only checked if it is used,
// because a data source may set the attribute that the variable stands for.
func number(variable, inPlaceOf string) attr.Attr {
	a := source.Variable(variable, inPlaceOf, "How often something is tried changes neither what is sent nor where.")
	a.Type = cty.Number
	return a
}

// Backend returns the table for a block with the arguments of Terraform's http backend, for a program that
// stands between Terraform and that backend. The variables do not have Terraform's names, so that Terraform
// finds no address if it is run without the program.
func Backend() attr.Table {
	t := attr.Table{
		Name: "http", OtherNames: []string{"gitlab", "webdav"},
		Doc: "A server for states, with the arguments of Terraform's `http` backend.",
		Attrs: []attr.Attr{
			{Name: "address", Type: cty.String, Required: true},
			{Name: "update_method", Type: cty.String, Default: cty.StringVal("POST")},
			{Name: "lock_address", Type: cty.String},
			{Name: "lock_method", Type: cty.String, Default: cty.StringVal("LOCK")},
			{Name: "unlock_address", Type: cty.String},
			{Name: "unlock_method", Type: cty.String, Default: cty.StringVal("UNLOCK")},
			{Name: "retry_max", Type: cty.Number, Check: attr.Between(0, mostWait)}, // Terraform's backend also accepts more than mostTries
			{Name: "retry_wait_min", Type: cty.Number, Check: attr.Between(0, mostWait)},
			{Name: "retry_wait_max", Type: cty.Number, Check: attr.Between(0, mostWait)},
		},
	}
	for i, a := range t.Attrs {
		t.Attrs[i].Env = []string{"STATECRYPT_HTTP_" + strings.ToUpper(a.Name)}
	}
	for _, a := range credentials().Without("url").Attrs { // the attribute address replaces url
		for i, name := range a.Env {
			a.Env[i] = strings.Replace(name, "TF_", "STATECRYPT_", 1)
		}
		t.Attrs = append(t.Attrs, a)
	}
	return t
}

package openbao

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/harmless"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
)

// both returns the OpenBao and Vault environment variables with the given names, in the order in which
// OpenBao's API client reads them.
func both(names ...string) []string {
	var out []string
	for _, n := range names {
		out = append(out, "BAO_"+n, "VAULT_"+n)
	}
	return out
}

// Reasons for [attr.Attr.Harmless].
const (
	keyHarmless         = "It says which key the server is asked for, and not which server is asked."
	certificateHarmless = "A certificate is shown to whatever server the code names, and proves nothing without its key."
	patienceHarmless    = "How long and how often something is tried changes neither what is sent nor where."
)

const defaultAddress = "https://127.0.0.1:8200"

func table() attr.Table {
	str, num, flag := cty.String, cty.Number, cty.Bool
	return attr.Table{
		Name:       "openbao",
		OtherNames: []string{"vault", "transit", "hashicorp_vault", "vault_transit"},
		Example:    []string{`address = "https://bao.example.com:8200"`, `key_name = "tf-state"`},
		Doc: "Gets the key from the transit engine of OpenBao or HashiCorp Vault, with one `decrypt` call. At most one of the `auth_` " +
			"blocks logs in before that; without one, `token` is used.",
		Attrs: []attr.Attr{
			{Name: "key_name", Type: str, Required: true, Form: attr.Name, Harmless: keyHarmless, Doc: "The name of the key in the " +
				"engine at `transit_engine_path`."},
			{Name: "key_length", Type: num, Default: cty.NumberIntVal(32), Harmless: keyHarmless, Check: attr.Whole(num, checkLength),
				Doc: "The length of new keys in bytes: 16, 32 or 64. A key of 64 bytes is too long for `aes_gcm`; put a `pbkdf2` with a `chain` in " +
					"between. Defaults to `32`."},
			// Not harmless: with another path, the request would write to an engine that is not a transit
			// engine.
			{Name: "transit_engine_path", Type: str, Form: attr.Path, Default: cty.StringVal("/transit"),
				Check: attr.Is(isEngine, "this is not the path of the engine; write the path without the /v1 of the API"),
				Doc:   "Where the transit engine is mounted. Defaults to `/transit`."},
			{Name: "associated_data", Type: str, Harmless: keyHarmless,
				Check: attr.Is(isAssociatedData, fmt.Sprintf("the value must be standard base64 of at most %d characters", maxAssociatedData)),
				Doc: "Data that new keys are bound to, in base64; it is stored in the file. OpenBao only: " +
					"Vault does not bind keys, and OpenTofu reads such files from 1.13 on."},
			{Name: "address", Type: str, Default: cty.StringVal(defaultAddress), Env: both("AGENT_ADDR", "ADDR"), Check: attr.Text(checkAddress),
				Doc: "The address of the server. Defaults to `https://127.0.0.1:8200`."},
			// Not harmless: another namespace has its own login and engine, which would get the secret and
			// create new keys.
			{Name: "namespace", Type: str, Env: both("NAMESPACE"),
				Doc: "The namespace of the transit engine and of the login. Defaults to the root namespace."},
			{Name: "token", Type: str, Form: attr.Token, Secrecy: attr.Secret, Harmless: harmless.Secret, Env: both("TOKEN"), Doc: "The token."},
			{Name: "auth_approle", Doc: "Log in with an AppRole.", Attrs: []attr.Attr{
				{Name: "role_id", Type: str, Required: true, Doc: "The RoleID."},
				{Name: "secret_id", Type: str, Secrecy: attr.Secret, Doc: "The SecretID, if the role requires one."},
				{Name: "mount_path", Type: str, Form: attr.Path, Default: cty.StringVal("approle"),
					Doc: "Where the auth method is mounted. Defaults to `approle`."},
			}},
			{Name: "auth_kubernetes", Excludes: []string{"auth_approle"}, Doc: "Log in with the token of a Kubernetes " +
				"service account.", Attrs: []attr.Attr{
				{Name: "role", Type: str, Required: true, Doc: "The name of the role."},
				{Name: "jwt", Type: str, Secrecy: attr.Secret, Doc: "The token itself. Defaults to the content of `jwt_file`."},
				{Name: "jwt_file", Type: str, Secrecy: attr.NamesSecret, Default: cty.StringVal("/var/run/secrets/kubernetes.io/serviceaccount/token"),
					Doc: "The path of the file that holds the token. Defaults to that of the pod's service account."},
				{Name: "mount_path", Type: str, Form: attr.Path, Default: cty.StringVal("kubernetes"), Doc: "Where the auth method " +
					"is mounted. Defaults to `kubernetes`."},
			}},
			{Name: "auth_jwt", Excludes: []string{"auth_approle", "auth_kubernetes"}, Doc: "Log in with a JSON web token, " +
				"such as that of a CI job.", Attrs: []attr.Attr{
				{Name: "role", Type: str, Doc: "The name of the role. Defaults to the default role of the auth method."},
				{Name: "jwt", Type: str, Required: true, Excludes: []string{"jwt_file"}, Group: "jwt", Secrecy: attr.Secret,
					Harmless: harmless.Secret, Env: []string{"TERRAFORM_VAULT_AUTH_JWT"},
					Doc: "The token itself. Exactly one of `jwt` and `jwt_file` is required."},
				{Name: "jwt_file", Type: str, Group: "jwt", Secrecy: attr.NamesSecret, Doc: "The path of a file that holds the token."},
				{Name: "mount_path", Type: str, Form: attr.Path, Default: cty.StringVal("jwt"),
					Doc: "Where the auth method is mounted. Defaults to `jwt`."},
			}},
			{Name: "ca_cert_file", Type: str, Form: attr.OrEmpty, Env: both("CACERT"), Doc: "The path of a PEM file with " +
				"the certificates of authorities to trust, in place of those of the system."},
			{Name: "ca_cert_dir", Type: str, Form: attr.OrEmpty, Env: both("CAPATH"), Doc: "The path of a folder of such files."},
			{Name: "ca_cert_pem", Type: str, Form: attr.OrEmpty, Env: both("CACERT_BYTES"), Check: attr.Text(recognize.CheckPEM),
				Doc: "The certificates themselves, in PEM."},
			{Name: "client_cert_file", Type: str, Group: "certificate", RequiredWith: "client_key_file",
				Harmless: certificateHarmless, Env: both("CLIENT_CERT"),
				Doc: "The path of a PEM file with a client certificate."},
			{Name: "client_key_file", Type: str, Group: "certificate", RequiredWith: "client_cert_file", Secrecy: attr.NamesSecret,
				Harmless: harmless.Secret, Env: both("CLIENT_KEY"),
				Doc: "The path of a PEM file with the key of the client certificate."},
			{Name: "client_cert_pem", Type: str, Group: "certificate", RequiredWith: "client_key_pem",
				Harmless: certificateHarmless, Env: both("CLIENT_CERT_BYTES"), Check: attr.Text(recognize.CheckPEM),
				Doc: "A client certificate itself, in PEM."},
			{Name: "client_key_pem", Type: str, Group: "certificate", RequiredWith: "client_cert_pem", Secrecy: attr.Secret,
				Form: attr.Lines, Harmless: harmless.Secret, Env: both("CLIENT_KEY_BYTES"), Check: attr.Text(recognize.CheckPEM),
				Doc: "The key of the client certificate itself, in PEM."},
			{Name: "tls_server_name", Type: str, Form: attr.OrEmpty, Env: both("TLS_SERVER_NAME"), Doc: "The name that " +
				"the server's certificate must have. Defaults to the host of the address."},
			{Name: "skip_tls_verify", Type: flag, Env: both("SKIP_VERIFY"), Default: cty.False,
				Harmless: "Certificates are then verified, as they are without it.", HarmlessIf: harmless.False,
				Doc: "Whether any certificate of the server is accepted. Anyone in between can then read the " +
					"token and the keys. Defaults to `false`."},
			{Name: "proxy_address", Type: str, Secrecy: attr.LocalSecret, Form: attr.OrEmpty, Env: both("PROXY_ADDR", "HTTP_PROXY"),
				Check: attr.Text(web.CheckProxy), Doc: "The URL of a proxy for this server, in place of `HTTPS_PROXY` and the like."},
			{Name: "max_retries", Type: num, Env: both("MAX_RETRIES"), Harmless: patienceHarmless, Default: cty.NumberIntVal(2),
				Check: attr.Between(0, 100),
				Doc: "How often a request is repeated when the server is overloaded, fails or is not reached. " +
					"Defaults to `2`."},
			{Name: "client_timeout", Type: str, Env: both("CLIENT_TIMEOUT"), Harmless: patienceHarmless, Default: cty.StringVal("60s"),
				Check: attr.Text(func(text string) error { _, err := duration(text); return err }),
				Doc: "How long a request may take with its repetitions, as in `90s` or in seconds. Defaults to " +
					"`60s`."},
			{Name: "disable_redirects", Type: flag, Env: both("DISABLE_REDIRECTS"), Default: cty.True,
				Harmless: "Redirects are then refused, as they are without it.", HarmlessIf: harmless.True,
				Doc: "Whether a redirect is refused, because the token would go to its target. `false` follows one, never from https to http, as " +
					"standby servers require. Defaults to `true`."},
		},
	}
}

func isEngine(path string) bool { return !strings.HasPrefix(strings.Trim(path, "/"), "v1/") }

func isAssociatedData(text string) bool {
	_, err := base64.StdEncoding.DecodeString(text)
	return err == nil && len(text) <= maxAssociatedData
}

func checkAddress(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "unix" || u.Host == "" && u.Scheme != "unix":
		return errors.New("this is not a URL; write a URL like https://bao.example.com:8200")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("the URL has a user, a query or a fragment; remove it")
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/ui"):
		return errors.New("the address contains the /ui of the web interface; remove /ui")
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/v1"), strings.Contains(u.Path, "/v1/"):
		return errors.New("the address contains /v1; remove /v1")
	}
	return nil
}

func checkLength(v cty.Value) error {
	if n, acc := v.AsBigFloat().Int64(); acc != big.Exact || n != 16 && n != 32 && n != 64 {
		return errors.New("the value must be 16, 32 or 64")
	}
	return nil
}

package azureauth

import (
	"net/url"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/harmless"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// Reasons for [attr.Attr.Harmless].
const (
	nameHarmless = "A client ID is a name, which proves nothing without the secret."
	flagHarmless = "It chooses between ways to sign in, and all of them lead to the same Microsoft."
)

// Attrs returns the attributes for signing in. The group "client" contains the client's credentials; the
// client and tenant IDs are not secrets. The map env overrides the environment variables of some attributes.
func Attrs(env map[string][]string) []attr.Attr {
	attrs := []attr.Attr{
		{Name: "tenant_id", Type: cty.String, Form: attr.Name, Env: []string{"ARM_TENANT_ID"},
			Harmless: "Whatever the tenant, Microsoft alone gets the secret.", Doc: "The tenant to sign in to."},
		text("subscription_id", "The subscription whose account the Azure CLI is to use.",
			"It chooses among the accounts of the user's Azure CLI, which get no secret of the code.", "ARM_SUBSCRIPTION_ID"),
		text("client_id", "The client ID of a service principal, or of a managed identity.", nameHarmless, "ARM_CLIENT_ID"),
		text("client_id_file_path", "The path of a file that holds the client ID.", nameHarmless, "ARM_CLIENT_ID_FILE_PATH"),
		{Name: "client_secret", Type: cty.String, Secrecy: attr.Secret, Group: "client", Env: []string{"ARM_CLIENT_SECRET"},
			Harmless: harmless.Secret, Doc: "The client secret of a service principal."},
		secretFile("client_secret_file_path", "The path of a file that holds the client secret.", "ARM_CLIENT_SECRET_FILE_PATH"),
		{Name: "client_certificate", Type: cty.String, Secrecy: attr.Secret, Form: attr.Lines, Group: "client",
			Env: []string{"ARM_CLIENT_CERTIFICATE"}, Harmless: harmless.Secret,
			Doc: "The client certificate of a service principal with its private key, as PKCS#12 in base64."},
		{Name: "client_certificate_password", Type: cty.String, Secrecy: attr.Secret, Env: []string{"ARM_CLIENT_CERTIFICATE_PASSWORD"},
			Harmless: harmless.Secret, Doc: "The password of the client certificate."},
		secretFile("client_certificate_path", "The path of a PKCS#12 file with the client certificate and its "+
			"private key.", "ARM_CLIENT_CERTIFICATE_PATH"),
		flag("use_oidc", "Sign in with an OpenID Connect token: `oidc_token`, `oidc_token_file_path`, or one that `oidc_request_url` gives."),
		{Name: "oidc_token", Type: cty.String, Form: attr.Token, Secrecy: attr.Secret, Group: "client", Env: []string{"ARM_OIDC_TOKEN"},
			Harmless: harmless.Secret, Doc: "The OpenID Connect token."},
		secretFile("oidc_token_file_path", "The path of a file that holds the OpenID Connect token.", "ARM_OIDC_TOKEN_FILE_PATH"),
		{Name: "oidc_request_url", Type: cty.String, Env: []string{"ARM_OIDC_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_URL"}, UnlessGroup: "client",
			Harmless: "Nothing but oidc_request_token is sent there, and the two come from one place.",
			Doc:      "The https address that gives OpenID Connect tokens, such as that of GitHub Actions."},
		{Name: "oidc_request_token", Type: cty.String, Form: attr.Token, Secrecy: attr.Secret, Group: "client", RequiredWith: "oidc_request_url",
			Env:      []string{"ARM_OIDC_REQUEST_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"},
			Harmless: harmless.Secret, Doc: "The token for `oidc_request_url`, which is required with it."},
		flag("use_msi", "Sign in as the managed identity of this machine."),
		{Name: "msi_endpoint", Type: cty.String, UnlessGroup: "client",
			Check:    attr.Is(recognize.IsHTTP, "this is not an http or https address"),
			Harmless: "No secret of the code is sent there: what it answers is an identity of the machine.",
			Doc:      "The address that gives tokens of the managed identity. Defaults to that of a virtual machine."},
		flag("use_aks_workload_identity", "Sign in with AKS workload identity, which is set up by "+
			"`AZURE_CLIENT_ID`, `AZURE_TENANT_ID` and `AZURE_FEDERATED_TOKEN_FILE`."),
		{Name: "use_cli", Type: cty.Bool, Default: cty.True, Harmless: flagHarmless,
			Doc: "Sign in with the Azure CLI when nothing else is set up. Defaults to `true`."},
		{Name: "environment", Type: cty.String, Default: cty.StringVal("public"), Env: []string{"ARM_ENVIRONMENT"},
			Harmless: "It is the default.", HarmlessIf: harmless.OneOf("public"), Doc: "The cloud: `public`, `usgovernment` or `china`. Defaults to `public`."},
		{Name: "metadata_host", Type: cty.String, Env: []string{"ARM_METADATA_HOST"},
			Check: attr.Is(isHost, "this is not a host name; write only the host, without a scheme or a path"),
			Doc:   "The host that describes another cloud, at `/metadata/endpoints`. It takes precedence over `environment`."},
	}
	for i, attr := range attrs {
		if own, ok := env[attr.Name]; ok {
			attrs[i].Env = own
		}
	}
	return attrs
}

func text(name, doc, harmless string, env ...string) attr.Attr {
	return attr.Attr{Name: name, Type: cty.String, Env: env, Harmless: harmless, Doc: doc}
}

func secretFile(name, doc string, env ...string) attr.Attr {
	return attr.Attr{Name: name, Type: cty.String, Secrecy: attr.NamesSecret, Group: "client", Env: env, Harmless: harmless.Secret, Doc: doc}
}

func flag(name, doc string) attr.Attr {
	return attr.Attr{Name: name, Type: cty.Bool, Default: cty.False, Harmless: flagHarmless, Doc: doc + " Defaults to `false`."}
}

func isHost(text string) bool {
	u, err := url.Parse("https://" + text + "/")
	return err == nil && u.Host == text
}

// New returns the Access for the values of [Attrs]. It returns an error for mistakes that can be detected
// without I/O.
func New(v attr.Values, w world.World) (Access, error) {
	a := Access{values: v, world: w}
	host, requestURL := v.String("metadata_host"), v.String("oidc_request_url")
	named, ok := clouds(v.String("environment"))
	if !ok && host == "" {
		return a, v.Errorf("environment", "the value must be public, usgovernment or china; for another cloud, set metadata_host")
	}
	if host == "" {
		a.Cloud = named
	}
	if u, err := url.Parse(requestURL); v.Bool("use_oidc") && requestURL != "" && (err != nil || u.Scheme != "https" || u.Host == "") {
		return a, v.Errorf("oidc_request_url", "this is not an https address")
	}
	return a, nil
}

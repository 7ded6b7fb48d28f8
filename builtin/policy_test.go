package builtin_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// inCode puts a value of the code into settings, within the blocks around it.
func (l leaf) inCode(settings map[string]cty.Value, value cty.Value) {
	for i := len(l.path) - 1; i > 0; i-- {
		value = cty.ObjectVal(map[string]cty.Value{l.path[i]: value})
	}
	settings[l.path[0]] = value
}

func (l leaf) value(text string) cty.Value {
	switch {
	case l.Type == cty.Bool:
		return cty.BoolVal(text == "true")
	case l.Type.IsListType():
		return cty.ListVal([]cty.Value{cty.StringVal(text)})
	}
	return cty.StringVal(text)
}

// text is one that an attribute may have by its table, and that says who gives it. A kind whose
// check none of these passes has one to add.
func (l leaf) text(t *testing.T, who string) string {
	t.Helper()
	if l.Type == cty.Bool {
		isDefault := l.Default != cty.NilVal && l.Default.True()
		return strconv.FormatBool((who == "env") != isDefault)
	}
	number := map[string]string{"own": "1", "env": "2"}[who]
	for _, text := range []string{who, number, "https://" + who + ".example.com", "arn:aws:iam::123456789012:role/" + who,
		"-----BEGIN " + who} {
		if converted, err := convert.Convert(l.value(text), l.Type); err == nil && l.Check.Wrong(converted) == nil {
			return text
		}
	}
	t.Fatalf("%s has a check that refuses everything here", strings.Join(l.path, "."))
	return ""
}

// decoded is what comes of settings in an environment of pairs, without what is
// required and has nothing to do with the matter.
func (r routed) decoded(settings map[string]cty.Value, env attr.LookupEnv) (attr.Values, error) {
	table := r.table
	table.Attrs = optional(table.Attrs)
	return unstable.NewEntry("x", table, settings).Decode(table, env)
}

func optional(attrs []attr.Attr) []attr.Attr {
	out := slices.Clone(attrs)
	for i := range out {
		out[i].Required, out[i].RequiredWith, out[i].Attrs = false, "", slices.Clone(out[i].Attrs)
		if out[i].Attrs != nil {
			out[i].Attrs = optional(out[i].Attrs)
		}
	}
	return out
}

func (l leaf) in(v attr.Values) string {
	for _, block := range l.path[:len(l.path)-1] {
		inner, there := v.Block(block)
		if !there {
			return ""
		}
		v = inner
	}
	switch name := l.path[len(l.path)-1]; {
	case l.Type == cty.Bool:
		return strconv.FormatBool(v.Bool(name))
	case l.Type == cty.Number:
		return strconv.FormatInt(v.Int(name), 10)
	case l.Type.IsListType():
		return strings.Join(v.Strings(name), " ")
	default:
		return v.String(name)
	}
}

// machine are the variables of proxies that are for all programs.
func machine(name string) bool {
	return slices.Contains([]string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}, strings.ToUpper(name))
}

// TestPolicy: every rule of DESIGN.md, "Trust", about the environment, for every
// key provider and method that sends a secret, with every variable that is not
// harmless. Those rules that need a place
// which someone else names (homes, look-alikes, redirects, names of blocks) do
// not apply, because only the root configures key providers. For identities, see
// TestIdentities.
func TestPolicy(t *testing.T) {
	t.Parallel()
	kinds := map[string]bool{"openbao": true, "aws_kms": true, "azure_vault": true, "gcp_kms": true, "sops": true}
	for _, r := range routedKinds() {
		delete(kinds, r.table.Name)
		for _, route := range r.route {
			for _, variable := range route.Env {
				for _, secret := range r.secrets {
					if route.path[0] != secret.path[0] && !slices.Contains(secret.EntryInFiles, route.path[0]) {
						r.obeys(t, secret, route, variable)
					}
				}
			}
		}
	}
	for name := range kinds {
		t.Errorf("%s is not tested", name)
	}
}

// isOneIdentity reports whether route belongs to the identity of secret, or to
// that of the block that it stands in.
func (r routed) isOneIdentity(secret, route leaf) bool {
	around, _ := r.table.Attr(secret.path[0])
	return around.Group != "" && (route.Group == around.Group || route.UnlessGroup == around.Group)
}

func (r routed) obeys(t *testing.T, secret, route leaf, variable string) {
	t.Helper()
	what := r.table.Name + ": " + strings.Join(secret.path, ".") + ", " + variable
	ofEnv, ofCode := route.text(t, "env"), route.text(t, "own")
	env := variables(variable, ofEnv)
	beside := map[string]cty.Value{}
	if len(route.path) > 1 { // the block is there, without the argument
		beside[route.path[0]] = cty.EmptyObjectVal
	}
	secret.inCode(beside, secret.value(secret.text(t, "own")))
	switch v, err := r.decoded(beside, env); {
	case err != nil && strings.Contains(err.Error(), variable) && strings.Contains(err.Error(), secret.path[0]):
	case err != nil:
		t.Errorf("%s: beside a secret of the code, got %v", what, err)
	case machine(variable) != (route.in(v) == ofEnv):
		t.Errorf("%s: beside a secret of the code, got %q", what, route.in(v))
	case !machine(variable) && !r.isOneIdentity(secret, route):
		t.Errorf("%s: beside a secret of the code, it is ignored", what)
	}
	if v, err := r.decoded(beside, nil); err != nil || route.in(v) == ofEnv {
		t.Errorf("%s: with the environment off, got %v", what, err)
	}
	delete(beside, secret.path[0])
	if v, err := r.decoded(beside, env); err != nil || route.in(v) != ofEnv {
		t.Errorf("%s: without a secret of the code, it has no effect: %v", what, err)
	}
	own := map[string]cty.Value{}
	route.inCode(own, route.value(ofCode))
	if v, err := r.decoded(own, env); err != nil || route.in(v) == ofEnv {
		t.Errorf("%s: it replaces what the code says: %v", what, err)
	}
}

// TestIdentities: what the code says of an identity is neither replaced nor
// completed by variables. Identifiers that are not secrets, such as a client ID or an
// account to act as, are filled one by one, as in OpenTofu.
//
// Promise: Where secrets go
func TestIdentities(t *testing.T) {
	t.Parallel()
	keyProviders, _ := unstable.Tables(builtin.Registry())
	for kind, identities := range map[string][]struct {
		code   string            // attributes of the code
		closed map[string]string // :: attribute → the variable that must not fill it
		open   map[string]string // :: attribute → the variable that fills it
	}{
		"gcp_kms": {
			{
				code: "credentials", closed: map[string]string{"access_token": "GOOGLE_OAUTH_ACCESS_TOKEN"},
				open: map[string]string{"impersonate_service_account": "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT"},
			},
			{code: "access_token", closed: map[string]string{"credentials": "GOOGLE_CREDENTIALS"}},
			{code: "impersonate_service_account", open: map[string]string{
				"access_token": "GOOGLE_OAUTH_ACCESS_TOKEN", "credentials": "GOOGLE_APPLICATION_CREDENTIALS",
			}},
		},
		"azure_vault": {
			{
				code: "client_secret",
				closed: map[string]string{
					"client_secret_file_path": "ARM_CLIENT_SECRET_FILE_PATH", "client_certificate": "ARM_CLIENT_CERTIFICATE",
					"client_certificate_path": "ARM_CLIENT_CERTIFICATE_PATH", "oidc_token": "ARM_OIDC_TOKEN",
				},
				open: map[string]string{"client_id": "ARM_CLIENT_ID", "tenant_id": "ARM_TENANT_ID"},
			},
			{
				code: "client_certificate_path", closed: map[string]string{"client_certificate": "ARM_CLIENT_CERTIFICATE"},
				open: map[string]string{"client_certificate_password": "ARM_CLIENT_CERTIFICATE_PASSWORD"},
			},
			{code: "oidc_token", closed: map[string]string{
				"oidc_token_file_path": "ARM_OIDC_TOKEN_FILE_PATH", "oidc_request_token": "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
			}},
			{code: "client_id tenant_id", open: map[string]string{"client_secret": "ARM_CLIENT_SECRET"}},
		},
		"openbao": {
			{
				code: "client_key_file", closed: map[string]string{
					"client_cert_file": "BAO_CLIENT_CERT", "client_cert_pem": "VAULT_CLIENT_CERT_BYTES", "client_key_pem": "BAO_CLIENT_KEY_BYTES",
				},
				open: map[string]string{"token": "BAO_TOKEN"},
			},
			{code: "auth_jwt.jwt_file", closed: map[string]string{"auth_jwt.jwt": "TERRAFORM_VAULT_AUTH_JWT"}},
			{code: "auth_jwt.role", open: map[string]string{"auth_jwt.jwt": "TERRAFORM_VAULT_AUTH_JWT"}},
		},
	} {
		i := slices.IndexFunc(keyProviders, func(t attr.Table) bool { return t.Name == kind })
		r := routed{table: keyProviders[i]}
		at := map[string]leaf{}
		for _, l := range leaves(r.table.Attrs) {
			at[strings.Join(l.path, ".")] = l
		}
		for _, c := range identities {
			code := map[string]cty.Value{}
			for _, name := range strings.Fields(c.code) {
				at[name].inCode(code, at[name].value(at[name].text(t, "own")))
			}
			for isOpen, filled := range map[bool]map[string]string{false: c.closed, true: c.open} {
				for name, variable := range filled {
					text := at[name].text(t, "env")
					if v, err := r.decoded(code, variables(variable, text)); err != nil || at[name].in(v) != map[bool]string{true: text}[isOpen] {
						t.Errorf("%s: beside %s, %s fills %s with %q, %v", kind, c.code, variable, name, at[name].in(v), err)
					}
				}
			}
		}
	}
}

func variables(pairs ...string) attr.LookupEnv {
	return func(name string) (string, bool) {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

// TestPolicyOnTheWire: a stranger to whom variables lead, over any connection,
// sees the secret of a variable and none of the code.
//
// Promise: Where secrets go
func TestPolicyOnTheWire(t *testing.T) {
	var seen nettest.Log[string]
	note := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Note(r.Host + " " + r.Header.Get("X-Vault-Token") + r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusForbidden)
	})
	plain := httptest.NewServer(note)
	t.Cleanup(plain.Close)
	secure := nettest.Start(t, note)
	authority := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, []byte(nettest.PEM(secure.Certificate())), 0o600); err != nil {
		t.Fatal(err)
	}
	const bao = `key_provider "openbao" "x" {
	key_name = "k"
	max_retries = 0
	`
	const aws = `key_provider "aws_kms" "x" {
	kms_key_id  = "k"
	key_spec    = "AES_256"
	region      = "eu-west-1"
	max_retries = 1
	`
	token, keys := "token = \"OWN\"\n", "access_key = \"OWN\"\nsecret_key = \"x\"\n"
	at := func(url string) string { return "address = \"" + url + "\"\n" }
	baoToken, awsKeys := []string{"BAO_TOKEN", "ENV"}, []string{"AWS_ACCESS_KEY_ID", "ENV", "AWS_SECRET_ACCESS_KEY", "x"}
	kms := "endpoints {\nkms = \"" + secure.URL + "\"\n}\n"
	for name, c := range map[string]struct {
		settings, secret string // of the code
		env              []string
		own              []string // the same secret of the environment
	}{
		"openbao, address":      {bao, token, []string{"BAO_ADDR", plain.URL}, baoToken},
		"openbao, agent":        {bao, token, []string{"BAO_AGENT_ADDR", plain.URL}, baoToken},
		"openbao, of Vault":     {bao, token, []string{"VAULT_ADDR", plain.URL}, []string{"VAULT_TOKEN", "ENV"}},
		"openbao, unverified":   {bao + at(secure.URL), token, []string{"BAO_SKIP_VERIFY", "true"}, baoToken},
		"openbao, authority":    {bao + at(secure.URL), token, []string{"VAULT_CACERT_BYTES", nettest.PEM(secure.Certificate())}, baoToken},
		"openbao, proxy":        {bao + at("http://bao.example.com"), token, []string{"BAO_PROXY_ADDR", plain.URL}, baoToken},
		"aws_kms, endpoint":     {aws, keys, []string{"AWS_ENDPOINT_URL_KMS", plain.URL}, awsKeys},
		"aws_kms, any endpoint": {aws, keys, []string{"AWS_ENDPOINT_URL", plain.URL}, awsKeys},
		"aws_kms, authority": {aws + kms, keys, []string{"AWS_CA_BUNDLE", authority},
			awsKeys},
	} {
		t.Run(name, func(t *testing.T) {
			const rest = "}\nmethod \"aes_gcm\" \"x\" { keys = key_provider.openbao.x }\nstate { method = method.aes_gcm.x }"
			end := strings.Replace(rest, "openbao", strings.Fields(strings.ReplaceAll(c.settings, `"`, " "))[1], 1)
			try := func(code string, env ...string) string {
				seen.Requests()
				for i := 0; i+1 < len(env); i += 2 {
					t.Setenv(env[i], env[i+1])
				}
				enc, err := encryption.Load(builtin.Registry(), encryption.Code(code+end, "code"), encryption.Environment(variables(env...)))
				if err != nil {
					t.Fatal(err)
				}
				if _, err = enc.State().Encrypt(t.Context(), []byte(`{"version":4,"serial":1,"lineage":"x"}`)); err == nil {
					t.Error("a stranger's answer seals")
				}
				return strings.Join(seen.Requests(), "\n")
			}
			if got := try(c.settings+c.secret, c.env...); got != "" {
				t.Errorf("a stranger got %s", got)
			}
			if got := try(c.settings, slices.Concat(c.env, c.own)...); !strings.Contains(got, "ENV") {
				t.Errorf("the variables have no effect: %q", got)
			}
		})
	}
}

package azurerm

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/azurerm/azuretest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
)

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Who asks, and what for: each way to sign in gets the blob.
func TestIdentities(t *testing.T) {
	t.Setenv("MSI_ENDPOINT", "")
	t.Setenv("IDENTITY_ENDPOINT", "")
	t.Setenv("AZURE_CLIENT_ID", "workload")
	t.Setenv("AZURE_TENANT_ID", azuretest.Tenant)
	t.Setenv("AZURE_FEDERATED_TOKEN_FILE", write(t, "federated-token"))
	id := attrs{}.with("tenant_id", azuretest.Tenant, "client_id", azuretest.ClientID, "use_cli", false)
	bare := attrs{}.with("use_cli", false)
	for name, c := range map[string]struct {
		block attrs
		form  map[string]string // of the request for a token
		other string            // another request that must have been made
	}{
		"client secret": {block: withSecret(), form: map[string]string{"client_secret": azuretest.Secret}},
		"secret file": {block: id.with("client_secret_file_path", write(t, azuretest.Secret)),
			form: map[string]string{"client_secret": azuretest.Secret}},
		"oidc token": {block: id.with("use_oidc", true, "oidc_token", "oidc-token"),
			form: map[string]string{"client_assertion": "oidc-token"}},
		"pipeline": {block: id.with("use_oidc", true, "ado_service_connection_id", "connection"),
			form: map[string]string{"client_assertion": "oidc-token"}, other: "POST dev.azure.test/oidc"},
		"pipeline of the code": {block: id.with("use_oidc", true, "ado_service_connection_id", "connection", "oidc_request_token",
			"request-token", "oidc_request_url", "https://own.azure.test/oidc"),
			form: map[string]string{"client_assertion": "oidc-token"}, other: "POST own.azure.test/oidc"},
		"managed identity": {block: bare.with("use_msi", true, "client_id", "azurerm-source"),
			other: "GET 169.254.169.254/metadata/identity/oauth2/token"},
		"msi endpoint": {block: bare.with("use_msi", true, "client_id", "azurerm-other", "msi_endpoint",
			"http://identity.test/identity/oauth2/token"), other: "GET identity.test/identity/oauth2/token"},
		"workload identity": {block: bare.with("use_aks_workload_identity", true),
			form: map[string]string{"client_assertion": "federated-token"}},
		"us government": {block: withSecret().with("environment", "usgovernment"), other: "POST login.microsoftonline.us/"},
		"china":         {block: withSecret().with("environment", "china"), other: "POST login.chinacloudapi.cn/"},
		"metadata host": {block: withSecret().with("metadata_host", "management.private.test"), other: "POST login.private.test/"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newAccount()
			s.SignIn = func(form url.Values) bool {
				for field, want := range c.form {
					if form.Get(field) != want {
						t.Errorf("%s: %q", field, form.Get(field))
					}
				}
				return true
			}
			e := environment{"SYSTEM_OIDCREQUESTURI": "https://dev.azure.test/oidc", "SYSTEM_ACCESSTOKEN": "request-token"}
			if _, err := read(t, s.Client(t), e.settings(c.block), place()); err != nil {
				t.Fatal(err)
			}
			if other := s.Other(); !slices.ContainsFunc(other, func(r string) bool { return strings.Contains(r, c.other) }) {
				t.Errorf("requests: %q", other)
			}
		})
	}
}

// The host that gets secrets is Azure's own, in the cloud that is meant.
//
// Promise: Where secrets go
func TestHosts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		block attrs
		place attrs
		want  []string
	}{
		"public":        {withKey(), place(), []string{"acmestates.blob.core.windows.net"}},
		"us government": {withKey().with("environment", "usgovernment"), place(), []string{"acmestates.blob.core.usgovcloudapi.net"}},
		"china":         {withKey().with("environment", "china"), place(), []string{"acmestates.blob.core.chinacloudapi.cn"}},
		"metadata host": {withKey().with("metadata_host", "management.private.test"), place(),
			[]string{"management.private.test", "acmestates.blob.private.test"}},
		"endpoint": {withKey().with("blob_endpoint", "https://acmestates.blob.local.test/"), place(),
			[]string{"acmestates.blob.local.test"}},
		"endpoint and cloud": {withKey().with("blob_endpoint", "https://127.0.0.1:10000/acmestates", "metadata_host", "management.private.test"),
			place(), []string{"127.0.0.1:10000"}},
		"lookup, china": {withSecret().with("environment", "china"),
			place().with("resource_group_name", "states", "subscription_id", azuretest.Subscription),
			[]string{"login.chinacloudapi.cn", "login.chinacloudapi.cn", "login.chinacloudapi.cn", "management.chinacloudapi.cn",
				"acmestates.blob.core.chinacloudapi.cn"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newAccount()
			s.Actions = []string{azuretest.KeysAction}
			client := s.Client(t)
			var asked []string
			counting := &http.Client{CheckRedirect: client.CheckRedirect, Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				asked = append(asked, r.URL.Host)
				return client.Transport.RoundTrip(r)
			})}
			if _, err := read(t, counting, settings(c.block), c.place); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(asked, c.want) {
				t.Errorf("asked %q, want %q", asked, c.want)
			}
		})
	}
}

// What the environment has a say in.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	ambient := environment{"ARM_ACCESS_KEY": azuretest.Key}
	wrong := environment{"ARM_ACCESS_KEY": "Y2FuYXJ5", "ARM_SAS_TOKEN": "sv=1&sig=" + canary}
	identity := environment{"ARM_TENANT_ID": azuretest.Tenant, "ARM_CLIENT_ID": azuretest.ClientID, "ARM_CLIENT_SECRET": azuretest.Secret}
	named := func(a attrs) attrs { return a.with("name", "a", "use_cli", false) }
	inA := place().with("credentials_name", "a")
	says := sourcetest.OpenMistakes(t, "azurerm, environment")
	for name, c := range map[string]struct {
		settings source.Settings
		place    attrs
		fails    bool
	}{
		"key":                   {ambient.settings(), place(), false},
		"signature":             {environment{"ARM_SAS_TOKEN": azuretest.SAS}.settings(), place(), false},
		"identity":              {identity.settings(), place(), false},
		"key before signature":  {environment{"ARM_ACCESS_KEY": azuretest.Key, "ARM_SAS_TOKEN": "sv=1&sig=" + canary}.settings(), place(), false},
		"block without a key":   {ambient.settings(attrs{}.with("environment", "public")), place(), false},
		"identity of the block": {wrong.settings(withSecret().with("use_azuread_auth", true)), place(), false},
		"wrong key":             {wrong.settings(), place(), true},
		"named block":           {ambient.settings(named(attrs{})), inA, true},
		"switched off":          {settings(attrs{}.with("use_cli", false)), place(), true},
		"switched off, pipeline": {settings(withSecret().with("client_secret", nil, "use_oidc", true, "ado_service_connection_id",
			"connection", "oidc_request_token", "x")), place(), true},
		"switched off, workload":     {settings(attrs{}.with("use_aks_workload_identity", true)), place(), true},
		"environment of the backend": {environment{"ARM_USE_CLI": "false"}.settings(), place(), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := read(t, newAccount().Client(t), c.settings, c.place)
			switch {
			case c.fails:
				says.Error(t, name, err)
			case err != nil || len(got.Data) == 0:
				t.Errorf("got %v", err)
			}
		})
	}
}

// With the environment switched off, what the SDK would read of it by itself
// is not used: there is the same answer as without, or an error before anything
// is sent.
func TestEnvironmentIsSwitchedOff(t *testing.T) {
	for _, name := range []string{"MSI_ENDPOINT", "IDENTITY_ENDPOINT", "IMDS_ENDPOINT"} {
		t.Setenv(name, "")
	}
	steered := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked for %s", r.URL.Path) }))
	t.Cleanup(steered.Close)
	msi := attrs{}.with("use_msi", true, "client_id", "azurerm-off")
	for name, c := range map[string]struct {
		block attrs
		env   map[string]string
		want  string
	}{
		"keys": {withSecret(), map[string]string{"ARM_ACCESS_KEY": canary, "ARM_SAS_TOKEN": canary, "ARM_CLIENT_CERTIFICATE": canary,
			"AZURE_AUTHORITY_HOST": steered.URL, "AZURE_STORAGE_KEY": canary}, ""},
		"settings": {withKey(), map[string]string{"ARM_ENVIRONMENT": "china", "ARM_METADATA_HOST": "canary.invalid",
			"ARM_CUSTOMER_PROVIDED_KEY": canary, "ARM_USE_AZUREAD": "true", "ARM_TIMEOUT_SECONDS": canary}, ""},
		"region":           {withSecret(), map[string]string{"AZURE_REGIONAL_AUTHORITY_NAME": canary}, "AZURE_REGIONAL_AUTHORITY_NAME"},
		"managed identity": {msi, nil, ""},
		"app service":      {msi, map[string]string{"IDENTITY_ENDPOINT": steered.URL, "IDENTITY_HEADER": canary}, "IDENTITY_ENDPOINT"},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			s := newAccount()
			_, err := read(t, s.Client(t), settings(c.block), place())
			if c.want == "" && err != nil {
				t.Error(err)
			}
			if c.want != "" {
				if checkRefusal(t, err, false); !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want the variable %s in it", err, c.want)
				}
				if got := append(s.Requests(), s.Other()...); len(got) > 0 {
					t.Errorf("asked for %q", got)
				}
			}
		})
	}
}

// What the code gives to sign in with goes where the code says, or to Microsoft,
// whatever variables say to the SDK.
//
// Promise: Where secrets go (Azure)
func TestSecretsOfTheCode(t *testing.T) {
	for _, name := range []string{"SYSTEM_OIDCREQUESTURI", "ARM_OIDC_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_URL"} {
		t.Setenv(name, "https://steered.test/oidc")
	}
	const connection = "ARM_OIDC_AZURE_SERVICE_CONNECTION_ID"
	for _, name := range []string{connection, "AZURE_REGIONAL_AUTHORITY_NAME", "MSAL_FORCE_REGION", "ARM_USE_OIDC"} {
		t.Setenv(name, "")
	}
	id := attrs{}.with("tenant_id", azuretest.Tenant, "client_id", azuretest.ClientID, "use_cli", false)
	oidc := id.with("use_oidc", true)
	half := oidc.with("oidc_request_token", "request-token")
	whole := half.with("oidc_request_url", "https://own.test/oidc")
	says := sourcetest.OpenMistakes(t, "azurerm, secrets of the code")
	for name, c := range map[string]struct {
		block           attrs
		variable, value string
		fails           bool
	}{
		"a request token":                 {block: whole},
		"a request token, and a pipeline": {block: whole, variable: connection, value: "connection"},
		"a pipeline":                      {block: whole.with("ado_service_connection_id", "connection")},
		"a request token without its url": {block: half, fails: true},
		"a pipeline, without its url":     {block: half, variable: connection, value: "connection", fails: true},
		"a token, and a pipeline":         {block: oidc.with("oidc_token", "oidc-token"), variable: connection, value: "connection"},
		"a secret, and another way":       {block: withSecret(), variable: "ARM_USE_OIDC", value: "true"},
		"a secret, and a region": {block: withSecret(), variable: "AZURE_REGIONAL_AUTHORITY_NAME", value: canary,
			fails: true},
		"a secret, and a forced region": {block: withSecret(), variable: "MSAL_FORCE_REGION", value: canary, fails: true},
		"a request token, and a region": {block: whole, variable: "AZURE_REGIONAL_AUTHORITY_NAME", value: canary, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.variable != "" {
				t.Setenv(c.variable, c.value)
			}
			on := settings(c.block)
			on.LookupEnv, on.Credentials.Env = os.LookupEnv, os.LookupEnv
			all := []source.Settings{on}
			if !c.fails {
				all = append(all, settings(c.block))
			}
			for _, some := range all {
				s := newAccount()
				s.SignIn = func(url.Values) bool { return true }
				_, err := read(t, s.Client(t), some, place())
				switch {
				case !c.fails && err != nil:
					t.Error(err)
				case c.fails:
					says.Error(t, name, err)
				}
				for _, asked := range s.Other() {
					if strings.Contains(asked, "steered.test") || strings.Contains(asked, canary) {
						t.Errorf("asked for %s", asked)
					}
				}
			}
		})
	}
}

// Whoever signs in is not handed the customer's key, and works as the user's own tools do.
func TestIdentityBesideTheCustomersKey(t *testing.T) {
	for name, value := range map[string]string{"MSI_ENDPOINT": "", "IDENTITY_ENDPOINT": "", "AZURE_REGIONAL_AUTHORITY_NAME": "westeurope"} {
		t.Setenv(name, value)
	}
	s := newAccount()
	s.CustomerKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	e := environment{"ARM_USE_MSI": "true", "ARM_CLIENT_ID": "azurerm-customer"}
	if _, err := read(t, s.Client(t), e.settings(attrs{}.with("customer_provided_key", s.CustomerKey)), place()); err != nil {
		t.Error(err)
	}
}

// The role of the documentation is enough, and it is all that is needed.
func TestRole(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../examples/sources/azurerm/role.json")
	if err != nil {
		t.Fatal(err)
	}
	var role struct{ Actions, DataActions []string }
	if err := json.Unmarshal(text, &role); err != nil || len(role.Actions) > 0 || len(role.DataActions) != 1 {
		t.Fatalf("%v: %+v", err, role)
	}
	s := newAccount()
	s.Actions = role.DataActions
	if _, err := read(t, s.Client(t), settings(withSecret()), place()); err != nil {
		t.Error(err)
	}
	s.Actions = nil
	_, err = read(t, s.Client(t), settings(withSecret()), place())
	sourcetest.OpenMistakes(t, "azurerm, the role").Error(t, "no actions", err)
}

// The Azure CLI is slow. All sources of a run share what it gives, and it gets
// no secrets of ours.
func TestCLI(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for az is a shell script")
	}
	dir := t.TempDir()
	script := "#!/bin/sh\necho \"$* $TF_ENCRYPTION$ARM_ACCESS_KEY\" >>" + dir + "/asked\necho '{\"accessToken\":\"" + azuretest.Token +
		"\",\"expires_on\":4102444800}'\n"
	if err := os.WriteFile(filepath.Join(dir, "az"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("TF_ENCRYPTION", canary)
	s := newAccount()
	s.Put("tfstate", "other.tfstate", azuretest.Blob{Data: []byte("{}")})
	opens := kind(s.Client(t)).Start(environment{}.settings())
	var wg sync.WaitGroup
	for _, key := range []string{"network.tfstate", "other.tfstate", "network.tfstate"} {
		src, err := opens(request(t, place().with("key", key), nil))
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if _, err := src.Fetch(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	asked, err := os.ReadFile(filepath.Join(dir, "asked"))
	if want := "account get-access-token -o json --resource https://storage.azure.com \n"; err != nil || string(asked) != want {
		t.Errorf("asked %q, %v", asked, err)
	}
}

// Where the Azure CLI signs in, it says which subscription is meant.
func TestSubscriptionOfTheCLI(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for az is a shell script")
	}
	dir := t.TempDir()
	script := "#!/bin/sh\ncase \"$2\" in\nshow) echo '{\"id\":\"" + azuretest.Subscription + "\"}' ;;\n*) echo '{\"accessToken\":\"" +
		azuretest.ManagerToken + "\",\"expires_on\":4102444800}' ;;\nesac\n"
	if err := os.WriteFile(filepath.Join(dir, "az"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	s := newAccount()
	s.Actions = []string{azuretest.KeysAction}
	if _, err := read(t, s.Client(t), settings(attrs{}), place().with("resource_group_name", azuretest.Group)); err != nil {
		t.Error(err)
	}
}

// Two blocks of one run never get each other's token.
func TestTwoBlocks(t *testing.T) {
	t.Parallel()
	s := newAccount()
	var mu sync.Mutex
	var used []string
	client := s.Client(t)
	watching := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		mu.Lock()
		scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if strings.Contains(r.URL.Host, ".blob.") {
			used = append(used, scheme)
		}
		mu.Unlock()
		return client.Transport.RoundTrip(r)
	})}
	opens := kind(policy.Transporter(watching)).Start(settings(withKey(), withSecret().with("name", "b")))
	for _, a := range []attrs{place(), place().with("credentials_name", "b")} {
		src, err := opens(request(t, a, nil))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := src.Fetch(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"SharedKey", "Bearer"}; !slices.Equal(used, want) {
		t.Errorf("got %q", used)
	}
}

package builtin_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

const state = `{"version":4,"serial":7,"lineage":"l-1"}`

// TestCheckContactsNobody: what a check can say without a server, it says, and
// the settings are good.
//
// Promise: Checks
func TestCheckContactsNobody(t *testing.T) {
	t.Parallel()
	var asked atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Store(true) }))
	t.Cleanup(server.Close)
	enc, err := encryption.Load(builtin.Registry(), encryption.Code(fmt.Sprintf(`
key_provider "openbao" "k" {
	address  = %q
	token    = "t"
	key_name = "k"
}
method "aes_gcm" "m" { keys = key_provider.openbao.k }`, server.URL), "code"))
	if err != nil {
		t.Fatal(err)
	}
	target, err := enc.Use("method.aes_gcm.m")
	if err != nil {
		t.Fatal(err)
	}
	if found := enc.Check(); found != nil || asked.Load() {
		t.Errorf("got %v; the server was asked: %t", found, asked.Load())
	}
	if _, err := target.Encrypt(t.Context(), []byte(state)); err == nil || !asked.Load() {
		t.Errorf("got %v; without a check, the server was asked: %t", err, asked.Load())
	}
}

// tokenServer answers nothing, and shows the token of the last request.
func tokenServer(t *testing.T) (server *httptest.Server, got *atomic.Value) {
	t.Helper()
	got = new(atomic.Value)
	server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got.Store(r.Header.Get("X-Vault-Token"))
	}))
	t.Cleanup(server.Close)
	return server, got
}

// TestEnvironmentRedirectsNoSecret: whoever sets TF_ENCRYPTION does not get the
// token that stands in the code.
//
// Promise: TF_ENCRYPTION
func TestEnvironmentRedirectsNoSecret(t *testing.T) {
	t.Parallel()
	server, got := tokenServer(t)
	const method = `
method "aes_gcm" "main" { keys = key_provider.openbao.main }
state { method = method.aes_gcm.main }
key_provider "openbao" "main" {
	key_name = "k"
`
	toServer := fmt.Sprintf("address = %q\n", server.URL)
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "a setting of TF_ENCRYPTION", "canary")
	for name, c := range map[string]struct {
		code, environment, token string
		refused                  bool
	}{
		"another address":            {code: "address = \"https://bao.example.com\"\ntoken = \"canary\"", environment: toServer, refused: true},
		"an address":                 {code: "token = \"canary\"", environment: toServer, refused: true},
		"the value of a variable":    {code: "", environment: toServer + "token = var.canary", refused: true},
		"a variable in another part": {code: "", environment: toServer + "namespace = var.canary", refused: true},
		"the same address":           {code: toServer + "token = \"canary\"", environment: toServer, token: "canary"},
		"a token of its own":         {code: toServer + "token = \"canary\"", environment: "token = \"own\"", token: "own"},
		"all of its own":             {code: "token = \"canary\"", environment: toServer + "token = \"own\"", token: "own"},
	} {
		code := encryption.Code(method+c.code+"\n}", "code", canary())
		environment := encryption.Environment(variables("TF_ENCRYPTION", "key_provider \"openbao\" \"main\" {\n"+c.environment+"\n}"),
			canary())
		enc, err := encryption.Load(builtin.Registry(), code, environment)
		if err != nil {
			t.Fatal(err)
		}
		got.Store("")
		_, err = enc.State().Encrypt(t.Context(), []byte(state))
		if _, refused := errors.AsType[*attr.Error](err); refused != c.refused {
			t.Errorf("%s: %v", name, err)
		}
		says.Check(t, name, strings.ReplaceAll(fmt.Sprint(err), server.URL, "http://server"))
		if got := got.Load(); got != c.token {
			t.Errorf("%s: the server got the token %q", name, got)
		}
	}
}

// TestEnvironmentFillsNoAddress: a variable gives the address only to a token
// that comes from a variable as well.
//
// Promise: Where secrets go
func TestEnvironmentFillsNoAddress(t *testing.T) {
	t.Parallel()
	server, got := tokenServer(t)
	const settings = `
method "aes_gcm" "main" { keys = key_provider.openbao.main }
state { method = method.aes_gcm.main }
key_provider "openbao" "main" {
key_name = "k" `
	address := variables("BAO_ADDR", server.URL)
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "an address of the environment", "canary")
	for name, c := range map[string]struct {
		layers []encryption.Layer
		token  string // that the server gets
	}{
		"a token of the code": {
			layers: []encryption.Layer{encryption.Code(settings+"\ntoken = \"canary\"\n}", "code"), encryption.Environment(address)},
		},
		"a pod's own token": {
			layers: []encryption.Layer{encryption.Code(settings+"\nauth_kubernetes { role = \"r\" }\n}", "code"), encryption.Environment(address)},
		},
		"a token of TF_ENCRYPTION": {
			layers: []encryption.Layer{encryption.Environment(variables("BAO_ADDR", server.URL, "TF_ENCRYPTION", settings+"\ntoken = \"own\"\n}"))},
			token:  "own",
		},
		"a token of a variable": {
			layers: []encryption.Layer{encryption.Code(settings+"\n}", "code"),
				encryption.Environment(variables("BAO_ADDR", server.URL, "BAO_TOKEN", "own"))},
			token: "own",
		},
		"var.* in TF_ENCRYPTION": {
			layers: []encryption.Layer{encryption.Environment(variables("BAO_ADDR", server.URL, "TF_ENCRYPTION",
				settings+"\ntoken = var.canary\n}"), canary())},
		},
		"var.* in a name": { // which the file would show
			layers: []encryption.Layer{encryption.Environment(variables("TF_ENCRYPTION",
				settings+"\nencrypted_metadata_alias = var.canary\n}"), canary())},
		},
	} {
		enc, err := encryption.Load(builtin.Registry(), c.layers...)
		if err != nil {
			t.Fatal(err)
		}
		got.Store("")
		_, err = enc.State().Encrypt(t.Context(), []byte(state))
		says.Check(t, name, strings.ReplaceAll(fmt.Sprint(err), server.URL, "http://server"))
		if got.Load() != c.token {
			t.Errorf("%s: the server got the token %q: %v", name, got.Load(), err)
		}
	}
}

func canary() encryption.With {
	return encryption.Variables(map[string]cty.Value{"canary": cty.StringVal("canary")})
}

package encryption_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
)

func loadBoth(t *testing.T, code, environment string) *encryption.Encryption {
	t.Helper()
	r := builtin.Registry()
	o := r.Options(cty.NilVal)
	c, err := config.Parse(code, "code", o)
	if err != nil {
		t.Fatal(err)
	}
	e, err := config.ParseEnvironment(func(string) (string, bool) { return environment, true }, o)
	if err != nil {
		t.Fatal(err)
	}
	enc, err := encryption.New(r, config.Merge(c, e))
	if err != nil {
		t.Fatal(err)
	}
	return enc
}

// TestEnvironmentRedirectsNoSecret: whoever sets TF_ENCRYPTION does not get the
// token that stands in the code.
func TestEnvironmentRedirectsNoSecret(t *testing.T) {
	t.Parallel()
	var got atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got.Store(r.Header.Get("X-Vault-Token"))
	}))
	t.Cleanup(server.Close)
	code := `key_provider "openbao" "main" {
	key_name = "k"
	address  = "https://bao.example.com"
	token    = "canary"
}
method "aes_gcm" "main" { keys = key_provider.openbao.main }
state { method = method.aes_gcm.main }`
	enc := loadBoth(t, code, fmt.Sprintf(`key_provider "openbao" "main" { address = %q }`, server.URL))
	_, err := enc.State().Encrypt(t.Context(), []byte(state))
	if err == nil || !strings.Contains(err.Error(), "TF_ENCRYPTION:1,") || !strings.Contains(err.Error(), "code:4,") {
		t.Errorf("got %v", err)
	}
	if got := got.Load(); got != nil {
		t.Errorf("the server of the environment got the token %q", got)
	}
}

package builtin_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// listener is a service that notes the secrets that it gets, and refuses.
func listener(t *testing.T) (url, authority string, seen *nettest.Log[string]) {
	t.Helper()
	seen = new(nettest.Log[string])
	server := nettest.Start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Note(r.Header.Get("X-Vault-Token") + r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusForbidden)
	}))
	authority = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, []byte(nettest.PEM(server.Certificate())), 0o600); err != nil {
		t.Fatal(err)
	}
	return server.URL, authority, seen
}

// TestSweepOfKeyServices: no variable that a library reads by itself leads the
// secret of the code to a stranger, or away from its service. For those of Azure
// and Google, see their TestSteered and TestAnotherUniverse.
func TestSweepOfKeyServices(t *testing.T) {
	if testing.Short() {
		t.Skip("it calls two services a few hundred times")
	}
	service, authority, seen := listener(t)
	stranger, theirs, stolen := listener(t)
	t.Setenv("AWS_CA_BUNDLE", "") // which would be an error, if somebody has set it to what is not there
	for kind, settings := range map[string]string{
		"openbao": fmt.Sprintf("key_name = \"k\"\nmax_retries = 0\naddress = %q\nca_cert_file = %q\ntoken = \"OWN\"", service, authority),
		"aws_kms": fmt.Sprintf("kms_key_id = \"k\"\nkey_spec = \"AES_256\"\nregion = \"eu-west-1\"\nmax_retries = 1\naccess_key = \"OWN\"\n"+
			"secret_key = \"x\"\ncustom_ca_bundle = %q\nendpoints {\nkms = %q\n}", authority, service),
	} {
		text := fmt.Sprintf("key_provider %q \"x\" {\n%s\n}\nmethod \"aes_gcm\" \"x\" { keys = key_provider.%s.x }\n"+
			"state { method = method.aes_gcm.x }", kind, settings, kind)
		for _, some := range world.Known() {
			for name := range strings.FieldsSeq(some.Names) {
				if name == "PATH" || name == "path" || name == "HOME" || name == "GODEBUG" { // of this process itself
					continue
				}
				t.Run(kind+"/"+name, func(t *testing.T) {
					value := stranger
					if strings.Contains(name, "CERT") || strings.Contains(name, "CA_") {
						value = theirs
					}
					name = strings.ReplaceAll(name, "*", "X")
					t.Setenv(name, value)
					for mode, layers := range map[string][]encryption.Layer{
						"on": {encryption.Environment(variables(name, value))}, "off": nil,
					} {
						enc, err := encryption.Load(builtin.Registry(), append(layers, encryption.Code(text, "code"))...)
						if err != nil {
							t.Fatal(err)
						}
						_, err = enc.State().Encrypt(t.Context(), []byte(`{"version":4,"serial":1,"lineage":"x"}`))
						if got := strings.Join(stolen.Requests(), "\n"); got != "" {
							t.Errorf("the environment is %s: a stranger got %s", mode, got)
						}
						if got := strings.Join(seen.Requests(), "\n"); mode == "off" && !strings.Contains(got, "OWN") {
							t.Errorf("the secret did not arrive: %v", err)
						}
					}
				})
			}
		}
	}
}

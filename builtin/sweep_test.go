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
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/mixes"
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
// secret of the code to a stranger, or away from its service, however many are set. Those
// of Azure and Google have a test of their own.
//
// Promise: Where secrets go (every variable that a library reads by itself)
func TestSweepOfKeyServices(t *testing.T) {
	if testing.Short() {
		t.Skip("it calls two services a few hundred times")
	}
	service, authority, seen := listener(t)
	stranger, theirs, stolen := listener(t)
	t.Setenv("AWS_CA_BUNDLE", "") // which would be an error, if someone has set it to what is not there
	for kind, settings := range map[string]string{
		"openbao": fmt.Sprintf("key_name = \"k\"\nmax_retries = 0\naddress = %q\nca_cert_file = %q\ntoken = \"OWN\"", service, authority),
		"aws_kms": fmt.Sprintf("kms_key_id = \"k\"\nkey_spec = \"AES_256\"\nregion = \"eu-west-1\"\nmax_retries = 1\naccess_key = \"OWN\"\n"+
			"secret_key = \"x\"\ncustom_ca_bundle = %q\nendpoints {\nkms = %q\n}", authority, service),
	} {
		text := fmt.Sprintf("key_provider %q \"x\" {\n%s\n}\nmethod \"aes_gcm\" \"x\" { keys = key_provider.%s.x }\n"+
			"state { method = method.aes_gcm.x }", kind, settings, kind)
		var table attr.Table
		for _, block := range builtin.Registry().KeyProviders {
			if block.Name == kind {
				table = block.Table
			}
		}
		values := func(name string) []string {
			if strings.Contains(name, "CERT") || strings.Contains(name, "CA_") {
				return []string{theirs}
			}
			return []string{stranger, strings.TrimPrefix(stranger, "https://"), "true"}
		}
		for name, v := range mixes.Of(append(mixes.Known(), mixes.Declared(table.Attrs...)...), values) {
			t.Run(kind+"/"+name, func(t *testing.T) {
				ask := func(layers ...encryption.Layer) error {
					enc, err := encryption.Load(builtin.Registry(), append(layers, encryption.Code(text, "code"))...)
					if err == nil {
						_, err = enc.State().Encrypt(t.Context(), []byte(`{"version":4,"serial":1,"lineage":"x"}`))
					}
					if got := strings.Join(stolen.Requests(), "\n"); got != "" {
						t.Errorf("%d layers: a stranger got %s", len(layers), got)
					}
					return err
				}
				v.Past(t, func() error { return ask(encryption.Environment(os.LookupEnv)) })
				seen.Requests()
				v.Past(t, func() error {
					err := ask()
					if got := strings.Join(seen.Requests(), "\n"); !strings.Contains(got, "OWN") {
						t.Errorf("the environment is off, and the secret did not arrive: %v", err)
					}
					return nil
				})
			})
		}
	}
}

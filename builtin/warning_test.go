package builtin_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/openbao/openbaotest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// TestKeyServicesWarn: whatever turns verification off, each file that is opened
// with the key warns, also when the key is known already or another key provider
// builds on it.
//
// Promise: Where secrets go
func TestKeyServicesWarn(t *testing.T) {
	t.Parallel()
	bao := openbaotest.New(t, bytes.Repeat([]byte{1}, 32))
	bao.MakesKeys = true
	secure := nettest.Start(t, bao)
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "warnings")
	for name, c := range map[string]struct {
		address, rest string
		env           []string
		title         string
	}{
		"verified":     {address: secure.URL, rest: fmt.Sprintf("ca_cert_pem = %q", nettest.PEM(secure.Certificate()))},
		"this machine": {address: bao.URL},
		"its name":     {address: strings.Replace(bao.URL, "127.0.0.1", "localhost", 1)},
		"the code":     {address: secure.URL, rest: "skip_tls_verify = true", title: netfail.NotVerified},
		"a variable":   {address: secure.URL, env: []string{"BAO_SKIP_VERIFY", "true"}, title: netfail.NotVerified},
		"without TLS":  {address: bao.URL, rest: "skip_tls_verify = true"},
		"through a proxy": {address: "http://bao.example.com", rest: fmt.Sprintf("proxy_address = %q", bao.URL),
			title: netfail.NotEncrypted},
	} {
		for _, keys := range []string{"key_provider.openbao.x", "key_provider.pbkdf2.x"} {
			text := fmt.Sprintf(`key_provider "openbao" "x" {
	key_name = "k"
	address  = %q
	%s
}
key_provider "pbkdf2" "x" {
	chain         = key_provider.openbao.x
	iterations    = 200000
	hash_function = "sha256"
}
method "aes_gcm" "x" { keys = %s }
state { method = method.aes_gcm.x }`, c.address, c.rest, keys)
			enc, err := encryption.Load(builtin.Registry(), encryption.Code(text, "code"), encryption.Environment(variables(c.env...)))
			if err != nil {
				t.Fatal(err)
			}
			sealed, err := enc.State().Encrypt(t.Context(), []byte(`{"version":4,"serial":1,"lineage":"x"}`))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, again := range []string{"", ", again"} {
				opened, err := enc.State().Decrypt(t.Context(), bytes.Clone(sealed))
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				switch got := opened.Warnings; {
				case c.title == "" && len(got) == 0:
				case len(got) != 1 || got[0].Title != c.title:
					t.Errorf("%s, %s: got %q", name, keys, got)
				default:
					says.Check(t, name+", "+keys+again, got[0].Text)
				}
			}
		}
	}
}

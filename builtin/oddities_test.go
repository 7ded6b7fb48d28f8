package builtin_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// TestOdditiesAreNamed: if something cannot be sealed, the error says what is odd about any
// setting of its key provider.
func TestOdditiesAreNamed(t *testing.T) {
	t.Setenv("AWS_CA_BUNDLE", "")
	t.Setenv("HTTPS_PROXY", "http://proxy.invalid") // no service is reached
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	named := 0
	keyProviders, _ := unstable.Tables(builtin.Registry())
	for _, table := range keyProviders {
		t.Run(table.Name, func(t *testing.T) {
			for _, a := range table.Attrs {
				if a.Type != cty.String || a.Form == attr.KeyProvider {
					continue
				}
				for value, want := range testkit.Oddities() {
					named += saysOf(t, table, a.Name, value, want)
				}
			}
		})
	}
	if named < 100 {
		t.Errorf("only %d settings are named", named)
	}
}

// saysOf returns 1 if nothing could be sealed, and then looks for what is wanted.
func saysOf(t *testing.T, table attr.Table, name, value, want string) int {
	t.Helper()
	others := regexp.MustCompile(`(?m)^`+name+` = .*\n`).ReplaceAllString(needed[table.Name], "")
	text := fmt.Sprintf("key_provider %q \"x\" {\n%s%s = %q\n}\nmethod \"aes_gcm\" \"x\" {\n  keys = key_provider.%[1]s.x\n}\n"+
		"state {\n  method = method.aes_gcm.x\n}", table.Name, others, name, value)
	enc, err := encryption.Load(builtin.Registry(), encryption.Code(text, "code"))
	if err != nil {
		t.Fatal(err)
	}
	limited, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = enc.State().Encrypt(limited, []byte(`{"version":4,"serial":1,"lineage":"x"}`))
	if err == nil || errors.Is(err, context.DeadlineExceeded) {
		return 0
	}
	if !strings.Contains(testkit.WithFacts(err), want) {
		t.Errorf("%s = %q: got %v, want %s", name, value, err, want)
	}
	return 1
}

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
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// TestOdditiesAreNamed: if something cannot be sealed, the error says what is odd about any
// setting of its key provider, also in a block.
func TestOdditiesAreNamed(t *testing.T) {
	t.Setenv("AWS_CA_BUNDLE", "")
	t.Setenv("HTTPS_PROXY", "http://proxy.invalid") // no service is reached
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	named := 0
	keyProviders, _ := unstable.Tables(builtin.Registry())
	for _, table := range keyProviders {
		t.Run(table.Name, func(t *testing.T) {
			for _, l := range leaves(table.Attrs) {
				if l.Type != cty.String || l.Form == attr.KeyProvider {
					continue
				}
				odd := testkit.Oddities()
				if len(l.path) > 1 { // one is enough to see that blocks are looked at
					odd = map[string]string{"'states'": odd["'states'"]}
				}
				if l.Form == attr.Token {
					odd["Bearer x"] = recognize.Text("Bearer x", recognize.Token).Said("")
				}
				for value, want := range odd {
					named += saysOf(t, table, l, value, want)
				}
			}
		})
	}
	if named < 100 {
		t.Errorf("only %d settings are named", named)
	}
}

// saysOf returns 1 if nothing could be sealed, and then looks for what is wanted.
func saysOf(t *testing.T, table attr.Table, l leaf, value, want string) int {
	t.Helper()
	name := strings.Join(l.path, ".")
	others := regexp.MustCompile(`(?m)^`+name+` = .*\n`).ReplaceAllString(needed[table.Name], "")
	if strings.Contains(others, l.path[0]+" {") {
		return 0 // the block is there already
	}
	setting := fmt.Sprintf("%s = %q", l.path[len(l.path)-1], value)
	if len(l.path) > 1 {
		setting = l.path[0] + " {\n" + setting + "\n}"
	}
	text := fmt.Sprintf("key_provider %q \"x\" {\n%s%s\n}\nmethod \"aes_gcm\" \"x\" {\n  keys = key_provider.%[1]s.x\n}\n"+
		"state {\n  method = method.aes_gcm.x\n}", table.Name, others, setting)
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

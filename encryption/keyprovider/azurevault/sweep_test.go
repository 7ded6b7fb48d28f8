package azurevault_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/kindtest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/azurevault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/world"
)

// microsofts are the hosts that sign in may ask.
var microsofts = regexp.MustCompile(`^(GET|POST) ([a-z0-9-]+\.)?login\.(microsoftonline|microsoft)\.com/`)

// TestSweep: no variable that a library reads by itself leads the secret of the code,
// or the token that it gives, to a host that is not Microsoft's. With the environment
// off, none of them has an effect, unless it is an error.
func TestSweep(t *testing.T) {
	if testing.Short() {
		t.Skip("it signs in a few hundred times")
	}
	key, stored := kindtest.NewKey(t, build(t, service().Start(t), working()))
	for _, some := range world.Known() {
		for name := range strings.FieldsSeq(some.Names) {
			if world.IsBare(strings.ToUpper(name)) || name == "GODEBUG" { // of this process itself
				continue
			}
			t.Run(name, func(t *testing.T) {
				value := "evil.example"
				if strings.Contains(name, "URL") || strings.Contains(name, "ENDPOINT") || strings.Contains(name, "HOST") {
					value = "https://evil.example"
				}
				t.Setenv(strings.ReplaceAll(name, "*", "X"), value)
				for mode, lookup := range map[string]attr.LookupEnv{"on": os.LookupEnv, "off": nil} {
					s := service()
					got, err := ask(t, azurevault.BlockWith(azurevault.Options{Transport: s.Start(t)}), lookup, stored)
					for _, request := range s.Other() {
						if !microsofts.MatchString(request) {
							t.Errorf("the environment is %s: asked for %s", mode, request)
						}
					}
					if mode == "off" && some.Class != world.Refused && string(got) != string(key) {
						t.Errorf("the environment is off, and %s has an effect: %v", name, err)
					}
				}
			})
		}
	}
}

func ask(t *testing.T, block encryption.Block[encryption.KeyProvider], lookup attr.LookupEnv, stored []byte) ([]byte, error) {
	t.Helper()
	p, err := kindtest.TryBuild(block, working(), lookup)
	if err != nil {
		return nil, err
	}
	return p.Key(t.Context(), nil, stored)
}

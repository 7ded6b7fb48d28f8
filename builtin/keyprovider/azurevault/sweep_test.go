package azurevault_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/azurevault"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
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
	table := azurevault.BlockWith(azurevault.Options{}).Table
	hostile := func(string) []string {
		return []string{"https://evil.example", "evil.example", "evil.example:443", "true"}
	}
	kindtest.Sweep(t, table, key, hostile, func(t *testing.T, mode string, lookup attr.LookupEnv) ([]byte, error) {
		s := service()
		got, err := kindtest.Key(t, azurevault.BlockWith(azurevault.Options{Transport: s.Start(t)}), working(), lookup, stored)
		for _, request := range s.Other() {
			if !microsofts.MatchString(request) || strings.Contains(request, "evil") {
				t.Errorf("the environment is %s: asked for %s", mode, request)
			}
		}
		return got, err
	})
}

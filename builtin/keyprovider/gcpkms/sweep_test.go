package gcpkms_test

import (
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/gcpkms"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

// TestSweep: no variable that a library reads by itself leads credentials of the code
// to a host that is not Google's. With the environment off, none of them has an
// effect, unless it is an error.
func TestSweep(t *testing.T) {
	if testing.Short() {
		t.Skip("it signs in a few hundred times")
	}
	key, stored := kindtest.NewKey(t, build(t, service().Start(t), working()))
	users := service()
	users.Accepts = isUser
	transport := users.Start(t)
	t.Setenv("HOME", t.TempDir())
	google.Requests()
	table := gcpkms.BlockWith(gcpkms.Options{}).Table
	hostile := func(string) []string {
		return []string{"https://evil.example", "evil.example", "evil.example:443", "true"}
	}
	kindtest.Sweep(t, table, key, hostile, func(t *testing.T, mode string, lookup attr.LookupEnv) ([]byte, error) {
		block := gcpkms.BlockWith(gcpkms.Options{Transport: transport})
		got, err := kindtest.Key(t, block, working().With("access_token", nil, "credentials", user), lookup, stored)
		for _, request := range google.Requests() {
			if host, rest, _ := strings.Cut(request, " "); !strings.HasSuffix(host, ".googleapis.com") && strings.Contains(rest, canary) {
				t.Errorf("the environment is %s: %s got the credentials", mode, host)
			}
		}
		return got, err
	})
}

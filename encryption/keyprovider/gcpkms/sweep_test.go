package gcpkms_test

import (
	"os"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/kindtest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/gcpkms"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/googleauth/googleauthtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/world"
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
	users.Token = googleauthtest.UserToken
	options := users.Start(t)
	t.Setenv("HOME", t.TempDir())
	google.Requests()
	for _, some := range world.Known() {
		for name := range strings.FieldsSeq(some.Names) {
			if world.IsBare(strings.ToUpper(name)) || name == "GODEBUG" { // of this process itself
				continue
			}
			t.Run(name, func(t *testing.T) {
				value := "evil.example"
				if strings.Contains(name, "ENABLE") || strings.Contains(name, "DISABLE") || strings.Contains(name, "USE_") {
					value = "true"
				}
				t.Setenv(strings.ReplaceAll(name, "*", "X"), value)
				for mode, lookup := range map[string]attr.LookupEnv{"on": os.LookupEnv, "off": nil} {
					p, err := kindtest.TryBuild(gcpkms.Block(options...), working().With("access_token", nil, "credentials", user), lookup)
					var got []byte
					if err == nil {
						got, err = p.Key(t.Context(), nil, stored)
					}
					for _, request := range google.Requests() {
						if host, rest, _ := strings.Cut(request, " "); !strings.HasSuffix(host, ".googleapis.com") && strings.Contains(rest, canary) {
							t.Errorf("the environment is %s: %s got the credentials", mode, host)
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

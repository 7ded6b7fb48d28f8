package azureauth

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/azureauth/azureauthtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/amplification"
)

// handled is a network in which everybody is the same server.
type handled struct{ http.Handler }

func (h handled) Do(r *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, r)
	response := recorder.Result()
	response.Request = r
	return response, nil
}

// What the services that sign in answer costs no more than its size allows.
func TestCosts(t *testing.T) {
	answers := amplification.NewAnswers(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Host = r.URL.Host
		azureauthtest.Serve(w, r, nil, func(string) string { return "token" })
	}))
	table := attr.Table{Name: "x", Attrs: Attrs(nil)}
	for name, settings := range map[string]map[string]cty.Value{
		"secret": {"tenant_id": cty.StringVal(azureauthtest.Tenant), "client_id": cty.StringVal(azureauthtest.ClientID),
			"client_secret": cty.StringVal(azureauthtest.Secret)},
		"machine": {"use_msi": cty.True, "msi_endpoint": cty.StringVal("http://machine.test/identity/oauth2/token")},
	} {
		t.Run(name, func(t *testing.T) {
			values, err := unstable.NewEntry("x", table, settings).Decode(table, nil)
			if err != nil {
				t.Fatal(err)
			}
			answers.Run(t, func(t *testing.T) func() error {
				access, err := New(values, world.World{})
				if err != nil {
					t.Fatal(err)
				}
				access.Transport = handled{answers}
				return func() error {
					identity, err := access.Open(t.Context())
					if err == nil {
						_, err = identity.GetToken(t.Context(), policy.TokenRequestOptions{Scopes: []string{"https://storage.azure.com/.default"}})
					}
					return err
				}
			})
		})
	}
}

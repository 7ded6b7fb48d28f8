package httpsource

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/clitest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/servertest"
)

// States that a real CLI stores in a real Gitea are read back with a token that
// may do nothing but read packages.
func TestRealGitea(t *testing.T) {
	g := servertest.StartGitea(t)
	g.NewUser(t, "ci")
	g.NewUser(t, "stranger")
	g.Run(t, "admin", "user", "create", "--admin", "--username", "root2", "--random-password", "--email", "root2@example.test",
		"--must-change-password=false")
	// Nobody but the user, and administrators, sees what the user has.
	g.Do(t, http.MethodPatch, "/api/v1/admin/users/ci", g.NewToken(t, "root2", "write:admin"),
		`{"source_id":0,"login_name":"ci","visibility":"private"}`, http.StatusOK)
	writer, reader := g.NewToken(t, "ci", "write:package"), g.NewToken(t, "ci", "read:package")
	states := "/api/packages/ci/terraform/state/"
	at := func(name, user, token string) reading {
		r := at(g.URL + states + name)
		if token != "" {
			r.blocks = append(r.blocks, attrs{"url": cty.StringVal(g.URL + "/api/packages/ci/"), "username": cty.StringVal(user),
				"password": cty.StringVal(token)})
		}
		return r
	}

	var stored string // the name of one of the states
	for _, cli := range clitest.All(t) {
		name := cli.Name
		p := cli.Project(t, fmt.Sprintf(`backend "http" {
  address        = %[1]q
  lock_address   = "%[1]s/lock"
  unlock_address = "%[1]s/lock"
  lock_method    = "POST"
  unlock_method  = "DELETE"
}`, g.URL+states+name), "TF_HTTP_USERNAME=ci", "TF_HTTP_PASSWORD="+writer)
		p.Apply(t, "default")
		snap, err := at(name, "ci", reader).fetch(t)
		if err != nil {
			t.Fatal(err)
		}
		p.Compare(t, "default", snap.Data, g.Do(t, http.MethodGet, states+name, reader, "", http.StatusOK))
		p.CheckShown(t, "default", snap.Data)
		// While someone writes, it can be read.
		g.Do(t, http.MethodPost, states+name+"/lock", writer, `{"ID":"1","Operation":"OperationTypeApply","Who":"a@b"}`, http.StatusOK)
		if _, err := at(name, "ci", reader).fetch(t); err != nil {
			t.Errorf("%s, locked: %v", name, err)
		}
		g.Do(t, http.MethodDelete, states+name+"/lock", writer, `{"ID":"1"}`, http.StatusOK)
		stored = name
	}

	_, err := at("never-written", "ci", reader).fetch(t)
	if m, ok := source.IsMissing(err); !ok || !m.CredentialsSent {
		t.Errorf("never written: got %v", err)
	}
	for name, c := range map[string]struct{ user, token string }{
		"no token":               {},
		"wrong token":            {"ci", "0123456789012345678901234567890123456789"},
		"token for other things": {"ci", g.NewToken(t, "ci", "read:repository")},
		"token of someone else":  {"stranger", g.NewToken(t, "stranger", "read:package")},
		"wrong password":         {"stranger", "wrong"},
	} {
		for _, state := range []string{stored, "never-written"} {
			_, err := at(state, c.user, c.token).fetch(t)
			if _, ok := source.IsMissing(err); err == nil || ok {
				t.Errorf("%s, %s: got %v; a refusal does not show that there is no state", name, state, err)
			}
		}
	}
	// The token that is enough to read is not enough to write.
	g.Do(t, http.MethodPost, states+stored+"?ID=", reader, `{"version":4,"serial":99,"lineage":"x"}`, http.StatusUnauthorized)
}

package all

import (
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// TestPlainHTTP: what each source says of plain http to another machine, and that it says
// nothing of plain http to this one. The source remote refuses it, and pg, which is no HTTP,
// has the rule in its own tests.
//
// Promise: Where secrets go
func TestPlainHTTP(t *testing.T) {
	says, rows := sourcetest.OpenMistakes(t, "plain http"), policies(t)
	for _, name := range []string{"s3", "oss", "cos", "oci", "gcs", "kubernetes", "consul", "git", "azurerm", "http"} {
		t.Run(name, func(t *testing.T) {
			i := slices.IndexFunc(Kinds(), func(k source.Kind) bool { return k.Name == name })
			a := arenaOf(Kinds()[i], rows[name])
			check := func(host string) string {
				t.Helper()
				warnings, err := a.readAt(t, plain(a.where(host)), map[string]string{"HTTP_PROXY": internet.url}, true, plain(a.own(host)))
				said := ""
				if err != nil && (name != "git" || !strings.Contains(internet.take(), "Authorization: Basic")) { // git gets no repository here
					said = err.Error()
				}
				for _, w := range warnings {
					said += w.Title + ": " + w.Text
				}
				return said
			}
			elsewhere := check("state.example.com")
			says.Error(t, name, errors.New(elsewhere))
			for _, host := range thisMachine(t) {
				want := ""
				if strings.HasPrefix(host, "localhost") && (name == "oss" || name == "cos" || name == "oci") {
					want = elsewhere // bucket or namespace stand before it, and make another name of it
				}
				if said := check(host); said != want {
					t.Errorf("%s: got %q, want %q", host, said, want)
				}
			}
		})
	}
}

// thisMachine are the hosts of a server on it.
func thisMachine(t *testing.T) []string {
	address := strings.TrimPrefix(internet.url, "http://")
	hosts := []string{address, strings.Replace(address, "127.0.0.1", "localhost", 1)}
	if listener, err := net.Listen("tcp", "[::1]:0"); err == nil { // there are machines without IPv6
		server := nettest.Unstarted(t, http.HandlerFunc(internet.answer))
		server.Listener.Close()
		server.Listener = listener
		server.Start()
		hosts = append(hosts, listener.Addr().String())
	}
	return hosts
}

// plain is what a block says, with http in place of https.
func plain(a attrs) attrs {
	out := attrs{}
	for name, v := range a {
		out[name], _ = cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
			if v.Type() == cty.String && !v.IsNull() {
				v = cty.StringVal(strings.Replace(v.AsString(), "https://", "http://", 1))
			}
			return v, nil
		})
	}
	return out
}

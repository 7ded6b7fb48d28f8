package remote

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/remote/tfetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
)

type attrs = map[string]cty.Value

func text(s string) cty.Value { return cty.StringVal(s) }

// named is the workspaces block with a name; prefixed the one with a prefix.
func named(name string) cty.Value {
	return cty.ObjectVal(attrs{"name": text(name), "prefix": cty.NullVal(cty.String)})
}

func prefixed(prefix string) cty.Value {
	return cty.ObjectVal(attrs{"name": cty.NullVal(cty.String), "prefix": text(prefix)})
}

// quick does not wait between tries.
func quick() source.Kind {
	k := Kind()
	k.Begin = func(s source.Settings) source.Open {
		r := newRun(s)
		r.patience = web.Patience{Timeout: 30 * time.Second, Tries: 2, WaitMin: time.Millisecond, WaitMax: 10 * time.Millisecond}
		return r.open
	}
	return k
}

func blocks(all ...attrs) source.Credentials {
	c := source.Credentials{Table: credentials()}
	for i, a := range all {
		c.Entries = append(c.Entries, unstable.NewEntry(fmt.Sprintf("credentials.remote[%d]", i), c.Table, a))
	}
	return c
}

// environment looks up in variables only.
func environment(variables map[string]string) attr.LookupEnv {
	return func(name string) (string, bool) {
		v, ok := variables[name]
		return v, ok
	}
}

// block is a credentials block for all of host.
func block(host, ca, token string) attrs {
	a := attrs{"url": text("https://" + host + "/"), "client_ca_certificate_pem": text(ca)}
	if token != "" {
		a["token"] = text(token)
	}
	return a
}

// ask is one data source.
type ask struct {
	attrs     attrs
	workspace string
	settings  source.Settings
	limit     int64
}

func (a ask) open(t *testing.T) (source.Source, error) {
	t.Helper()
	k := quick()
	v, err := unstable.NewEntry("data.statecrypt_remote_state.test.remote", k.Table, a.attrs).Decode(k.Table, a.settings.LookupEnv)
	if err != nil {
		return nil, err
	}
	if a.workspace == "" {
		a.workspace = "default"
	}
	if a.limit == 0 {
		a.limit = 1 << 20
	}
	return k.Start(a.settings)(source.Request{Values: v, Workspace: a.workspace, MaxSize: a.limit})
}

func (a ask) fetch(t *testing.T) (*source.Snapshot, error) {
	t.Helper()
	s, err := a.open(t)
	if err != nil {
		t.Fatal(err)
	}
	return s.Fetch(t.Context())
}

// network is the workspace acme/network at host.
func network(host string) attrs {
	return attrs{"hostname": text(host), "organization": text("acme"), "workspaces": named("network")}
}

func with(a attrs, name string, value cty.Value) attrs {
	b := attrs{name: value}
	for k, v := range a {
		if k != name {
			b[k] = v
		}
	}
	return b
}

const readToken = "tok.atlasv1.rrrrrrrrrrrrrrrrrrrr" //nolint:gosec // for tests

// server serves the workspace network, with data or without a state, to those who
// may read.
func server(data []byte) *tfetest.Server {
	s := tfetest.New()
	s.Tokens = map[string]tfetest.Access{readToken: tfetest.Read}
	s.Workspace("network")
	if data != nil {
		s.Put("network", data)
	}
	return s
}

func TestSource(t *testing.T) {
	place := func(t *testing.T, data []byte) sourcetest.Place {
		s := server(data)
		host, ca := tfetest.Start(t, s)
		return sourcetest.Place{
			Attrs:    network(host),
			Settings: source.Settings{Credentials: blocks(block(host, ca, readToken))},
			Secrets:  []string{readToken},
			Changed:  func() error { return onlyReads(s) },
		}
	}
	broken := func(change func(*tfetest.Server, *sourcetest.Place)) func(*testing.T) sourcetest.Place {
		return func(t *testing.T) sourcetest.Place {
			s := server([]byte(`{"version":4}`))
			host, ca := tfetest.Start(t, s)
			p := sourcetest.Place{Attrs: network(host), Settings: source.Settings{Credentials: blocks(block(host, ca, readToken))},
				Secrets: []string{readToken}}
			change(s, &p)
			return p
		}
	}
	sourcetest.Run(t, sourcetest.Harness{
		Kind:  quick(),
		Place: place,
		Stuck: func(t *testing.T) sourcetest.Place {
			host, ca := tfetest.Start(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
			return sourcetest.Place{Attrs: network(host), Settings: source.Settings{Credentials: blocks(block(host, ca, readToken))},
				Secrets: []string{readToken}}
		},
		Bad: map[string]func(*testing.T) sourcetest.Place{
			"wrong token":   broken(func(s *tfetest.Server, _ *sourcetest.Place) { s.Tokens = nil }),
			"sees nothing":  broken(func(s *tfetest.Server, _ *sourcetest.Place) { s.Tokens[readToken] = tfetest.None }),
			"outputs only":  broken(func(s *tfetest.Server, _ *sourcetest.Place) { s.Tokens[readToken] = tfetest.Outputs }),
			"no workspace":  broken(func(_ *tfetest.Server, p *sourcetest.Place) { p.Attrs["workspaces"] = named("other") }),
			"no org":        broken(func(_ *tfetest.Server, p *sourcetest.Place) { p.Attrs["organization"] = text("other") }),
			"no service":    broken(func(s *tfetest.Server, _ *sourcetest.Place) { s.Discovery = map[string]any{"modules.v1": "/"} }),
			"no version":    broken(func(_ *tfetest.Server, p *sourcetest.Place) { p.Attrs["state_version"] = text("sv-nope") }),
			"nobody at all": broken(func(_ *tfetest.Server, p *sourcetest.Place) { p.Attrs["hostname"] = text("127.0.0.1:1") }),
		},
	})
}

// onlyReads says what was asked for besides the four requests of a read.
func onlyReads(s *tfetest.Server) error {
	allowed := []string{"GET /.well-known/terraform.json", "GET /api/v2/organizations/acme/workspaces/network", "GET /api/v2/workspaces/ws-",
		"GET /api/state-versions/sv-", "GET /v1/object/signed-"}
	for _, r := range s.Requests() {
		if !slices.ContainsFunc(allowed, func(prefix string) bool { return strings.HasPrefix(r, prefix) }) {
			return errors.New(r)
		}
	}
	return nil
}

// One read is five requests, and a second one of the same run does not ask again
// where the service is.
func TestRequests(t *testing.T) {
	s := server([]byte(`{"version":4}`))
	host, ca := tfetest.Start(t, s)
	src, err := ask{attrs: network(host), settings: source.Settings{Credentials: blocks(block(host, ca, readToken))}}.open(t)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"GET /.well-known/terraform.json",
		"GET /api/v2/organizations/acme/workspaces/network",
		"GET /api/v2/workspaces/ws-0000000000000001/current-state-version",
		"GET /api/state-versions/sv-0000000000000002/hosted_state",
		"GET /v1/object/signed-sv-0000000000000002",
	}
	for range 2 {
		snap, err := src.Fetch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if snap.Revision != "sv-0000000000000002" || snap.Lock != nil {
			t.Errorf("got the revision %q and the lock %v", snap.Revision, snap.Lock)
		}
		if got := s.Requests(); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		want = want[1:]
	}
}

func TestMissingAndDenied(t *testing.T) {
	outputsOnly := func(a attrs) attrs { return with(a, "outputs_only", cty.True) }
	type row struct {
		data    []byte
		access  tfetest.Access
		attrs   func(attrs) attrs
		terse   bool
		missing bool
	}
	state := []byte(`{"version":4}`)
	same := func(a attrs) attrs { return a }
	says := sourcetest.OpenMistakes(t, "remote, reads", readToken)
	for name, r := range map[string]row{
		"no state":              {access: tfetest.Read, attrs: same, missing: true},
		"no state, terse":       {access: tfetest.Read, attrs: same, terse: true, missing: true},
		"no state, not allowed": {access: tfetest.Outputs, attrs: same},
		"not allowed":           {data: state, access: tfetest.Outputs, attrs: same},
		"no workspace":          {access: tfetest.Read, attrs: func(a attrs) attrs { return with(a, "workspaces", named("other")) }},
		"sees nothing":          {data: state, access: tfetest.None, attrs: same},
		"refused":               {data: state, access: -1, attrs: same},
		"outputs, no state":     {access: tfetest.Outputs, attrs: outputsOnly, missing: true},
		"outputs, sees nothing": {data: state, access: tfetest.None, attrs: outputsOnly},
		"unknown state version": {data: state, access: tfetest.Read,
			attrs: func(a attrs) attrs { return with(a, "state_version", text("sv-nope")) }},
		"version of another one": {data: state, access: tfetest.Read,
			attrs: func(a attrs) attrs { return with(a, "state_version", text("sv-0000000000000004")) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := server(r.data)
			if r.data == nil {
				s.Workspace("filler") // so that IDs are the same
			}
			s.Put("secret", []byte(`{"version":4,"outputs":{}}`))
			s.Tokens[readToken], s.Terse = r.access, r.terse
			if r.access < 0 {
				s.Tokens = nil
			}
			host, ca := tfetest.Start(t, s)
			_, err := ask{attrs: r.attrs(network(host)), settings: source.Settings{Credentials: blocks(block(host, ca, readToken))}}.fetch(t)
			says.Error(t, name, err)
			missing, ok := source.IsMissing(err)
			if ok != r.missing || ok && !missing.CredentialsSent {
				t.Errorf("missing: %v, %v", ok, err)
			}
		})
	}
}

func TestLock(t *testing.T) {
	for _, data := range [][]byte{nil, []byte(`{"version":4}`)} {
		s := server(data)
		s.Workspace("network").LockedBy = "user-0000000000000042"
		host, ca := tfetest.Start(t, s)
		snap, err := ask{attrs: network(host), settings: source.Settings{Credentials: blocks(block(host, ca, readToken))}}.fetch(t)
		var lock *source.Lock
		if missing, ok := source.IsMissing(err); ok {
			lock = missing.Lock
		} else if err != nil {
			t.Fatal(err)
		} else {
			lock = snap.Lock
		}
		if lock == nil || *lock != (source.Lock{ID: "acme/network", Who: "user-0000000000000042"}) {
			t.Errorf("got %v", lock)
		}
	}
}

func TestStateVersion(t *testing.T) {
	s := server([]byte("first"))
	s.Put("network", []byte("second"))
	host, ca := tfetest.Start(t, s)
	settings := source.Settings{Credentials: blocks(block(host, ca, readToken))}
	old := s.Workspace("network").Versions[0]
	for attr, want := range map[string]string{"": "second", old.ID: "first"} {
		a := network(host)
		if attr != "" {
			a["state_version"] = text(attr)
		}
		snap, err := ask{attrs: a, settings: settings}.fetch(t)
		if err != nil || string(snap.Data) != want || attr != "" && snap.Revision != attr {
			t.Errorf("got %v, %v", snap, err)
		}
	}
	says := sourcetest.OpenMistakes(t, "remote, a version without a place")
	for _, status := range []string{"pending", "backing_data_soft_deleted", "<canary>"} {
		s.Change(func() { old.Status, old.State = status, nil })
		_, err := ask{attrs: with(network(host), "state_version", text(old.ID)), settings: settings}.fetch(t)
		says.Error(t, status, err)
	}
}

// A size that differs from what is sent shows that something is wrong.
func TestSize(t *testing.T) {
	says := sourcetest.OpenMistakes(t, "remote, sizes")
	for name, more := range map[string]int64{"another": 1, "too large": 1 << 40} {
		s := server([]byte(`{"version":4}`))
		s.Workspace("network").Versions[0].MoreSize = more
		host, ca := tfetest.Start(t, s)
		_, err := ask{attrs: network(host), settings: source.Settings{Credentials: blocks(block(host, ca, readToken))}}.fetch(t)
		says.Error(t, name, err)
	}
}

// Tokens come from the block, then the environment, then the files of the CLIs.
func TestWhereTokensComeFrom(t *testing.T) {
	const right, wrong = readToken, "wrong-wrong-wrong-wrong"
	hcl := func(host, token string) string {
		return fmt.Sprintf("plugin_cache_dir = \"$HOME/.cache\"\nprovider_installation {\n  direct {}\n}\ncredentials %q {\n  token = %q\n}\n",
			host, token)
	}
	json := func(host, token string) string {
		return fmt.Sprintf(`{"credentials": {%q: {"token": %q}, "other.example.com": {"token": "x"}}}`, host, token)
	}
	says := sourcetest.OpenMistakes(t, "remote, tokens")
	for name, r := range map[string]struct {
		block string
		env   func(host string) map[string]string
		files func(host string) map[string]string // :: path under HOME → text
		off   bool                                // use_environment = false
		fails bool
	}{
		"block": {block: right, env: func(h string) map[string]string { return map[string]string{variable(h): wrong} }},
		"variable": {env: func(h string) map[string]string { return map[string]string{variable(h): right} },
			files: func(h string) map[string]string { return map[string]string{".terraformrc": hcl(h, wrong)} }},
		"variable with dots": {env: func(h string) map[string]string { return map[string]string{"TF_TOKEN_" + h: right} }},
		"of another host": {env: func(string) map[string]string { return map[string]string{"TF_TOKEN_app_terraform_io": right} },
			fails: true},
		"TFE_TOKEN is not ours": {env: func(string) map[string]string { return map[string]string{"TFE_TOKEN": right} },
			fails: true},
		"credentials.tfrc.json": {files: func(h string) map[string]string {
			return map[string]string{".terraform.d/credentials.tfrc.json": json(h, right)}
		}},
		"credentials.tfrc.json first": {files: func(h string) map[string]string {
			return map[string]string{".terraform.d/credentials.tfrc.json": json(h, right), ".terraformrc": hcl(h, wrong)}
		}},
		".terraformrc": {files: func(h string) map[string]string { return map[string]string{".terraformrc": hcl(h, right)} }},
		"names in quotes": {files: func(h string) map[string]string {
			return map[string]string{".terraformrc": fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"a/b\" = \"/c\"\n  }\n"+
				"  direct {}\n}\n\"credentials\" %q {\n  \"token\" = %q\n}\n", h, right)}
		}},
		"labels as arguments, and one twice": {files: func(h string) map[string]string {
			return map[string]string{".terraformrc": fmt.Sprintf("a = 1\na = 2\ncredentials = { %q = { token = %q, token = %q } }\n", h, wrong,
				right)}
		}},
		"deep lists": {files: func(string) map[string]string {
			return map[string]string{".terraformrc": "a = " + strings.Repeat("[", 1<<20-10)}
		}, fails: true},
		".tofurc": {files: func(h string) map[string]string {
			return map[string]string{".tofurc": hcl(h, right), ".terraformrc": hcl(h, wrong)}
		}},
		"TF_CLI_CONFIG_FILE": {
			env: func(string) map[string]string { return map[string]string{"TF_CLI_CONFIG_FILE": "HOME/my.tfrc"} },
			files: func(h string) map[string]string {
				return map[string]string{"my.tfrc": hcl(h, right), ".terraform.d/credentials.tfrc.json": json(h, wrong)}
			},
		},
		"TF_CLI_CONFIG_FILE alone": {
			env: func(string) map[string]string { return map[string]string{"TF_CLI_CONFIG_FILE": "HOME/missing.tfrc"} },
			files: func(h string) map[string]string {
				return map[string]string{".terraform.d/credentials.tfrc.json": json(h, right)}
			},
			fails: true,
		},
		"a file with mistakes": {
			files: func(h string) map[string]string {
				return map[string]string{".terraformrc": "credentials {{{ canary", ".tofurc": `{"credentials": 7}`}
			},
			fails: true,
		},
		"a mistake that does no harm": {files: func(h string) map[string]string {
			return map[string]string{".terraformrc": "{{{", ".tofurc": hcl(h, right)}
		}},
		"use_environment = false": {
			off: true, fails: true,
			env: func(h string) map[string]string {
				return map[string]string{variable(h): right, "TF_CLI_CONFIG_FILE": "HOME/my.tfrc", "XDG_CONFIG_HOME": "HOME/xdg"}
			},
			files: func(h string) map[string]string {
				return map[string]string{"my.tfrc": hcl(h, right), "xdg/opentofu/credentials.tfrc.json": json(h, right)}
			},
		},
		"use_environment = false, and a file of the home": {
			off: true,
			env: func(h string) map[string]string {
				return map[string]string{variable(h): wrong, "TF_CLI_CONFIG_FILE": "HOME/my.tfrc"}
			},
			files: func(h string) map[string]string {
				return map[string]string{".terraformrc": hcl(h, right), "my.tfrc": hcl(h, wrong)}
			},
		},
		"a token that is no string": {files: func(h string) map[string]string {
			return map[string]string{".terraformrc": fmt.Sprintf("credentials %q {\n  token = [1]\n}\n", h)}
		}, fails: true},
		"a block without a host": {files: func(string) map[string]string {
			return map[string]string{".terraformrc": "credentials {\n  token = \"canary\"\n}\n"}
		}, fails: true},
		"a folder": {files: func(string) map[string]string { return map[string]string{".terraformrc/x": "canary"} },
			fails: true},
		"a large file": {files: func(string) map[string]string {
			return map[string]string{".terraformrc": strings.Repeat("#", 1<<20+1)}
		}, fails: true},
		"a line break": {env: func(h string) map[string]string { return map[string]string{variable(h): "a\nb"} }, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := server([]byte(`{"version":4}`))
			host, ca := tfetest.Start(t, s)
			home := t.TempDir()
			t.Setenv("HOME", home)
			env := map[string]string{"HOME": home}
			if r.files != nil {
				for path, text := range r.files(host) {
					path = filepath.Join(home, path)
					if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if r.env != nil {
				for name, value := range r.env(host) {
					env[name] = strings.ReplaceAll(value, "HOME", home)
				}
			}
			settings := source.Settings{Credentials: blocks(block(host, ca, r.block)), LookupEnv: environment(env)}
			if r.off {
				settings.LookupEnv = nil
				for name, value := range env {
					t.Setenv(name, value)
				}
			}
			src, err := ask{attrs: network(host), settings: settings}.open(t)
			if err == nil {
				_, err = src.Fetch(t.Context())
			}
			switch {
			case r.fails:
				says.Error(t, name, err)
			case err != nil:
				t.Error(err)
			}
			if err != nil && (strings.Contains(err.Error(), right) || strings.Contains(err.Error(), wrong)) {
				t.Errorf("the error holds a token: %v", err)
			}
		})
	}
}

// Of several blocks for one host, that for the organization or workspace is used.
func TestBlockOfTheOrganization(t *testing.T) {
	s := server([]byte(`{"version":4}`))
	host, ca := tfetest.Start(t, s)
	other := func(path string, token string) attrs {
		return with(block(host, ca, token), "url", text("https://"+host+path))
	}
	for name, all := range map[string][]attrs{
		"organization": {block(host, ca, "wrong"), other("/app/acme/", readToken), other("/app/acm/", "wrong")},
		"workspace": {block(host, ca, "wrong"), other("/app/acme", "wrong"), other("/app/acme/workspaces/network", readToken),
			other("/app/acme/workspaces/net", "wrong")},
		"host": {block(host, ca, readToken), other("/app/other/", "wrong")},
	} {
		if _, err := (ask{attrs: network(host), settings: source.Settings{Credentials: blocks(all...)}}).fetch(t); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	says := sourcetest.OpenMistakes(t, "remote, blocks")
	for _, path := range []string{"/api/v2/", "/apps"} {
		_, err := ask{attrs: network(host), settings: source.Settings{Credentials: blocks(other(path, readToken))}}.open(t)
		says.Error(t, path, err)
	}
	_, err := ask{attrs: network(host), settings: source.Settings{Credentials: blocks(with(block(host, ca, readToken), "url",
		text("http://"+host+"/")))}}.open(t)
	says.Error(t, "http", err)
}

func TestVariables(t *testing.T) {
	for host, want := range map[string]string{
		"app.terraform.io":     "TF_TOKEN_app_terraform_io",
		"tfe-1.example.com":    "TF_TOKEN_tfe__1_example_com",
		"xn--caf-dma.fr":       "TF_TOKEN_xn____caf__dma_fr",
		"tfe.example.com:8443": "TF_TOKEN_tfe_example_com:8443",
	} {
		if got := variable(host); got != want || !slices.Contains(variables(host), want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	// The names that the CLI's documentation gives for café.fr.
	for _, name := range []string{"TF_TOKEN_xn____caf__dma_fr", "TF_TOKEN_xn--caf-dma_fr", "TF_TOKEN_xn--caf-dma.fr",
		"TF_TOKEN_XN____CAF__DMA_FR"} {
		for _, host := range []string{"café.fr", "xn--caf-dma.fr", "CAFÉ.fr", "café.fr:443"} {
			if !slices.Contains(variables(host), name) {
				t.Errorf("%s is not found for %s", name, host)
			}
		}
		if slices.Contains(variables("cafe.fr"), name) || slices.Contains(variables("café.fr:8443"), name) {
			t.Errorf("%s is found for another host", name)
		}
	}
}

// The service may be called by several names, and be anywhere on its host.
func TestDiscovery(t *testing.T) {
	for name, r := range map[string]struct {
		services map[string]any
		want     string // path of the first request of the API
	}{
		"tfe.v2": {map[string]any{"state.v2": "/wrong/", "tfe.v2.1": "/wrong/", "tfe.v2": "/api/v2/"},
			"/api/v2/organizations/acme/workspaces/network"},
		"tfe.v2.1":          {map[string]any{"state.v2": "/wrong/", "tfe.v2.1": "/api/v2/"}, "/api/v2/organizations/acme/workspaces/network"},
		"state.v2":          {map[string]any{"state.v2": "/api/v2/"}, "/api/v2/organizations/acme/workspaces/network"},
		"no slash":          {map[string]any{"state.v2": "/api/v2"}, "/api/v2/organizations/acme/workspaces/network"},
		"relative":          {map[string]any{"state.v2": "../api/v2/"}, "/api/v2/organizations/acme/workspaces/network"},
		"with a path":       {map[string]any{"state.v2": "/tfe/api/"}, "/tfe/api/organizations/acme/workspaces/network"},
		"odd value skipped": {map[string]any{"tfe.v2": 7, "state.v2": "/api/v2/"}, "/api/v2/organizations/acme/workspaces/network"},
	} {
		t.Run(name, func(t *testing.T) {
			s := server([]byte(`{"version":4}`))
			s.Discovery = r.services
			host, ca := tfetest.Start(t, s)
			_, err := ask{attrs: network(host), settings: source.Settings{Credentials: blocks(block(host, ca, readToken))}}.fetch(t)
			if (err == nil) != strings.HasPrefix(r.want, "/api/v2/") {
				t.Error(err)
			}
			if got := s.Requests(); len(got) < 2 || got[1] != "GET "+r.want {
				t.Errorf("asked for %q", got)
			}
		})
	}
}

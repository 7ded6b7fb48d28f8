package remote

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/remote/tfetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
)

// recorder serves as h and remembers what came with the requests.
type recorder struct {
	http.Handler
	host, ca string
	tokens   []string
	paths    []string
}

func record(t *testing.T, h http.Handler) *recorder {
	t.Helper()
	r := &recorder{Handler: h}
	r.host, r.ca = tfetest.Start(t, r)
	return r
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.tokens = append(r.tokens, req.Header.Get("Authorization"))
	r.paths = append(r.paths, req.URL.Path)
	if req.Referer() != "" {
		r.tokens = append(r.tokens, "Referer "+req.Referer())
	}
	r.Handler.ServeHTTP(w, req)
}

// got reports whether any of the requests had something to tell.
func (r *recorder) got() bool { return strings.Join(r.tokens, "") != "" }

// Without a token, the blocks that come nearest are named.
func TestNearestBlock(t *testing.T) {
	service := &url.URL{Scheme: "https", Host: "tfe.example.com", Path: "/api/v2/"}
	says := sourcetest.OpenMistakes(t, "remote, the nearest block")
	for name, credentials := range map[string]source.Credentials{
		"none":                 blocks(),
		"another host":         blocks(block("app.terraform.io", "", readToken)),
		"another organization": blocks(block("tfe.example.com/app/emca", "", readToken)),
	} {
		l := &location{run: &run{credentials: credentials, tokens: &cliTokens{}}, host: service.Host, organization: "acme",
			workspace: "network"}
		says.Error(t, name, l.checkToken(service))
	}
}

// A data source may name any host. It gets no token that is not its own.
func TestAnotherHostGetsNoToken(t *testing.T) {
	mine, other := record(t, server(nil)), record(t, server([]byte(`{"version":4}`)))
	says := sourcetest.OpenMistakes(t, "remote, the token of another host")
	for name, settings := range map[string]source.Settings{
		"block": {Credentials: blocks(block(mine.host, mine.ca, readToken), block(other.host, other.ca, ""))},
		"environment": {Credentials: blocks(block(other.host, other.ca, "")),
			LookupEnv: environment(map[string]string{"TF_TOKEN_" + mine.host: readToken, "TFE_TOKEN": readToken,
				"TF_TOKEN_app_terraform_io": readToken})},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ask{attrs: network(other.host), settings: settings}.fetch(t)
			says.Error(t, name, err)
			sourcetest.Lacks(t, err, "credentials.remote", `url = "https://`+other.host+`/app/acme/workspaces/network"`, "token = var.state_token")
			if other.got() || len(other.paths) != 1 {
				t.Errorf("the other host was asked for %q and got %q", other.paths, other.tokens)
			}
			other.paths, other.tokens = nil, nil
		})
	}
	if len(mine.paths) > 0 {
		t.Errorf("the host of the token was asked for %q", mine.paths)
	}
}

// A host may say that its service is elsewhere. That gets a token only from a
// block of its own.
func TestServiceElsewhere(t *testing.T) {
	service := record(t, server([]byte(`{"version":4}`)))
	front := tfetest.New()
	front.Discovery = map[string]any{"tfe.v2": "https://" + service.host + "/api/v2/"}
	host := record(t, front)

	_, err := ask{attrs: network(host.host), settings: source.Settings{Credentials: blocks(block(host.host, host.ca, readToken),
		block(service.host, service.ca, ""))}}.fetch(t)
	says := sourcetest.OpenMistakes(t, "remote, a service elsewhere")
	says.Error(t, "without a token", err)
	sourcetest.Lacks(t, err, "credentials.remote", `url = "https://`+service.host+`/"`, "token = var.state_token")
	if len(service.paths) > 0 {
		t.Errorf("the service was asked for %q", service.paths)
	}
	own := source.Settings{Credentials: blocks(block(host.host, host.ca, "of-the-host"), block(service.host, service.ca, readToken))}
	if _, err := (ask{attrs: network(host.host), settings: own}).fetch(t); err != nil {
		t.Fatal(err)
	}
	// A block for an organization is for the host that it names.
	org := with(block(service.host, service.ca, readToken), "url", text("https://"+service.host+"/app/acme/"))
	_, err = ask{attrs: network(host.host), settings: source.Settings{Credentials: blocks(block(host.host, host.ca, readToken), org,
		block(service.host, service.ca, ""))}}.fetch(t)
	says.Error(t, "with one for an organization", err)
	if host.got() {
		t.Errorf("the document, which is public, was asked for with %q", host.tokens)
	}
	for _, token := range service.tokens {
		if token != "" && token != "Bearer "+readToken {
			t.Errorf("the service got %q", token)
		}
	}
}

// States are kept in object storage, whose signed URLs need no token, whether
// the API redirects there or names them.
func TestStorageElsewhere(t *testing.T) {
	says := sourcetest.OpenMistakes(t, "remote, storage")
	for _, direct := range []bool{false, true} {
		t.Run(fmt.Sprintf("direct %t", direct), func(t *testing.T) {
			s := server([]byte(`{"version":4}`))
			service, storage := record(t, s), record(t, s)
			s.Archive, s.Direct = "https://"+storage.host, direct
			settings := source.Settings{Credentials: blocks(block(service.host, service.ca, readToken), block(storage.host, storage.ca, ""))}
			snap, err := ask{attrs: network(service.host), settings: settings}.fetch(t)
			if err != nil || string(snap.Data) != `{"version":4}` {
				t.Fatalf("got %v, %v", snap, err)
			}
			if storage.got() || len(storage.paths) != 1 {
				t.Errorf("the storage was asked for %q and got %q", storage.paths, storage.tokens)
			}
			// Signed URLs are secrets: they are in no error.
			s.Change(func() { clear(s.Tokens) })
			away := answering(t, map[string]http.HandlerFunc{
				statePath: func(w http.ResponseWriter, r *http.Request) {
					http.Redirect(w, r, "https://"+storage.host+"/v1/object/canary-signature?X-Amz-Signature=canary", http.StatusFound)
				},
			})
			away.settings.Credentials.Entries = append(away.settings.Credentials.Entries, blocks(block(storage.host, storage.ca, "")).Entries...)
			_, err = away.fetch(t)
			says.Error(t, fmt.Sprintf("direct %t", direct), err)
		})
	}
}

// Every step could be redirected. No token goes along, and nothing goes over
// plain http.
func TestRedirects(t *testing.T) {
	says := sourcetest.OpenMistakes(t, "remote, redirects")
	for _, path := range []string{discoveryPath, workspacePath, currentPath, statePath} {
		t.Run(path, func(t *testing.T) {
			thief := record(t, saying(200, `{"tfe.v2":"/api/v2/","data":{"id":"x"}}`))
			a := answering(t, map[string]http.HandlerFunc{path: func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://"+thief.host+"/", http.StatusTemporaryRedirect)
			}})
			a.settings.Credentials.Entries = append(a.settings.Credentials.Entries, blocks(block(thief.host, thief.ca, "")).Entries...)
			_, err := a.fetch(t)
			if err == nil {
				t.Error("no error")
			}
			if thief.got() || len(thief.paths) == 0 {
				t.Errorf("the other host was asked for %q and got %q", thief.paths, thief.tokens)
			}
			for name, to := range map[string]string{
				"to http": "http://" + thief.host + "/", "with a user": "https://canary:pw@" + thief.host,
				"to ftp": "ftp://" + thief.host + "/canary", "to no host": "https:opaque",
			} {
				a := answering(t, map[string]http.HandlerFunc{path: func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Location", to)
					w.WriteHeader(http.StatusFound)
				}})
				_, err := a.fetch(t)
				says.Error(t, name+" at "+path, err)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	good := network("tfe.example.com")
	says := sourcetest.OpenMistakes(t, "remote, arguments")
	for name, r := range map[string]struct {
		attrs     attrs
		workspace string
		blocks    []attrs
	}{
		"a URL":            {attrs: with(good, "hostname", text("https://tfe.example.com/"))},
		"no host":          {attrs: with(good, "hostname", text(""))},
		"user":             {attrs: with(good, "hostname", text("canary:secret@tfe.example.com"))},
		"path":             {attrs: with(good, "hostname", text("tfe.example.com/canary"))},
		"query":            {attrs: with(good, "hostname", text("tfe.example.com?canary"))},
		"no organization":  {attrs: attrs{"workspaces": named("network")}},
		"org is a path":    {attrs: with(good, "organization", text("acme/../canary"))},
		"org is dots":      {attrs: with(good, "organization", text(".."))},
		"workspace's path": {attrs: with(good, "workspaces", named("../canary"))},
		"neither": {attrs: with(good, "workspaces", cty.ObjectVal(attrs{"name": cty.NullVal(cty.String),
			"prefix": cty.NullVal(cty.String)}))},
		"both":               {attrs: with(good, "workspaces", cty.ObjectVal(attrs{"name": text("a"), "prefix": text("b")}))},
		"another workspace":  {attrs: good, workspace: "staging"},
		"no default, prefix": {attrs: with(good, "workspaces", prefixed("net-"))},
		"no default":         {attrs: with(good, "workspaces", cty.NilVal)},
		"version is a path":  {attrs: with(good, "state_version", text("../canary"))},
		"version of outputs": {attrs: with(with(good, "state_version", text("sv-1")), "outputs_only", cty.True)},
		"CA": {attrs: good, blocks: []attrs{{"url": text("https://tfe.example.com/"),
			"client_ca_certificate_pem": text("canary")}}},
		"proxy":      {attrs: good, blocks: []attrs{{"url": text("https://tfe.example.com/"), "proxy": text("canary")}}},
		"token":      {attrs: good, blocks: []attrs{{"url": text("https://tfe.example.com/"), "token": text("canary\n")}}},
		"two blocks": {attrs: good, blocks: []attrs{{"url": text("https://tfe.example.com/")}, {"url": text("https://TFE.example.com")}}},
		"no url":     {attrs: good, blocks: []attrs{{"token": text("canary")}}},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range r.attrs {
				if v == cty.NilVal {
					delete(r.attrs, k)
				}
			}
			_, err := ask{attrs: r.attrs, workspace: r.workspace, settings: source.Settings{Credentials: blocks(r.blocks...)}}.open(t)
			says.Error(t, name, err)
		})
	}
}

// Certificates that nobody vouches for are accepted only where the block says so,
// and every read warns of it. A proxy comes from the block or the environment.
func TestConnections(t *testing.T) {
	s := server([]byte(`{"version":4}`))
	host, _ := tfetest.Start(t, s)
	unverified := attrs{"url": text("https://" + host + "/"), "token": text(readToken), "skip_cert_verification": cty.True}
	a := ask{attrs: network(host), settings: source.Settings{Credentials: blocks(unverified)}}
	snap, err := a.fetch(t)
	if err != nil || len(snap.Warnings) != 1 || snap.Warnings[0].Title != netfail.NotVerified {
		t.Fatalf("got %v, %v", snap, err)
	}
	says := sourcetest.OpenMistakes(t, "remote, connections")
	says.Error(t, "a warning", errors.New(snap.Warnings[0].Text))
	delete(unverified, "skip_cert_verification")
	a.settings.Credentials = blocks(unverified)
	_, err = a.fetch(t)
	says.Error(t, "an unknown authority", err)
	for _, code := range []int{407, 502} {
		proxy := httptest.NewServer(saying(code, "canary"))
		t.Cleanup(proxy.Close)
		for name, settings := range map[string]source.Settings{
			"a proxy": {Credentials: blocks(attrs{"url": text("https://tfe.example.com/"), "token": text(readToken),
				"proxy": text(strings.Replace(proxy.URL, "//", "//user:canary@", 1))})},
			"the proxy of the environment": {LookupEnv: environment(map[string]string{"HTTPS_PROXY": proxy.URL})},
		} {
			_, err := ask{attrs: network("tfe.example.com"), settings: settings}.fetch(t)
			says.Error(t, fmt.Sprint(name, ", ", code), err)
		}
	}
}

// With use_environment = false, nothing of the environment matters.
func TestEnvironmentIsLeftAlone(t *testing.T) {
	s := server([]byte(`{"version":4}`))
	host, ca := tfetest.Start(t, s)
	for name, value := range map[string]string{
		"HTTPS_PROXY": "http://127.0.0.1:1", "TF_CLOUD_HOSTNAME": "canary.example.com", "TF_CLOUD_ORGANIZATION": "canary",
		"TF_WORKSPACE": "canary", "TFE_TOKEN": "canary", "TF_CLI_CONFIG_FILE": "/canary", "TFE_ADDRESS": "https://canary",
		"TF_FORCE_LOCAL_BACKEND": "1", "TF_TOKEN_" + host: "canary", "TF_CLOUD_PROJECT": "canary",
	} {
		t.Setenv(name, value)
	}
	if _, err := (ask{attrs: network(host), settings: source.Settings{Credentials: blocks(block(host, ca, readToken))}}).fetch(t); err != nil {
		t.Error(err)
	}
	_, err := ask{attrs: attrs{"workspaces": named("network")}}.open(t)
	sourcetest.OpenMistakes(t, "remote, no environment").Error(t, "no organization", err)
	src, err := ask{attrs: attrs{"organization": text("acme"), "workspaces": named("network")}}.open(t)
	if err != nil || src.String() != "workspace acme/network at app.terraform.io" {
		t.Errorf("got %v, %v", src, err)
	}
}

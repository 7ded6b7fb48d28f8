package remote

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
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
	for name, c := range map[string]struct {
		credentials source.Credentials
		want        string
	}{
		"none": {blocks(), "or add it to {settings}"},
		"another host": {blocks(block("app.terraform.io", "", readToken)), "no remote block of credentials covers " +
			"https://tfe.example.com/app/acme/workspaces/network; yours covers https://app.terraform.io/ (the host differs)"},
		"another organization": {blocks(block("tfe.example.com/app/emca", "", readToken)), "(the path differs)"},
	} {
		l := &location{run: &run{credentials: c.credentials, tokens: &cliTokens{}}, host: service.Host, organization: "acme",
			workspace: "network"}
		fails(t, l.checkToken(service), "there is no token for tfe.example.com; set the variable TF_TOKEN_tfe_example_com", c.want)
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

// A data source may name any host. It gets no token that is not its own.
func TestAnotherHostGetsNoToken(t *testing.T) {
	mine, other := record(t, server(nil)), record(t, server([]byte(`{"version":4}`)))
	for name, settings := range map[string]source.Settings{
		"block": {Credentials: blocks(block(mine.host, mine.ca, readToken), block(other.host, other.ca, ""))},
		"environment": {Credentials: blocks(block(other.host, other.ca, "")),
			LookupEnv: environment(map[string]string{"TF_TOKEN_" + mine.host: readToken, "TFE_TOKEN": readToken,
				"TF_TOKEN_app_terraform_io": readToken})},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ask{attrs: network(other.host), settings: settings}.fetch(t)
			fails(t, err, "there is no token for "+other.host+"; run terraform login or tofu login",
				"the remote block of credentials that covers this address holds none that could be sent there; complete it")
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
	fails(t, err, host.host+" says that its service is at https://"+service.host, "add its token to the settings")
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
	fails(t, err, "and the token of one is not sent to the other")
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
			fails(t, err, "the state cannot be downloaded: https://"+storage.host+" answered 403 Forbidden, and no token was sent there")
		})
	}
}

// Every step could be redirected. No token goes along, and nothing goes over
// plain http.
func TestRedirects(t *testing.T) {
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
			for to, want := range map[string]string{
				"http://" + thief.host + "/":      "the server redirected us: the answer is at a place with http instead of https",
				"https://canary:pw@" + thief.host: "the server redirected us: the answer is at a URL with a user name or password in it",
				"ftp://" + thief.host + "/canary": "the server redirected us: the answer is at a place that is neither http nor https",
				"https:opaque":                    "the server redirected us: the answer is at a place that is neither http nor https",
			} {
				a := answering(t, map[string]http.HandlerFunc{path: func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Location", to)
					w.WriteHeader(http.StatusFound)
				}})
				_, err := a.fetch(t)
				fails(t, err, want)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	good := network("tfe.example.com")
	for name, r := range map[string]struct {
		attrs     attrs
		workspace string
		blocks    []attrs
		want      string
	}{
		"a URL":   {attrs: with(good, "hostname", text("https://tfe.example.com/")), want: "the name of a host is required"},
		"no host": {attrs: with(good, "hostname", text("")), want: "the name of a host is required"},
		"user":    {attrs: with(good, "hostname", text("canary:secret@tfe.example.com")), want: "the name of a host is required"},
		"path":    {attrs: with(good, "hostname", text("tfe.example.com/canary")), want: "the name of a host is required"},
		"query":   {attrs: with(good, "hostname", text("tfe.example.com?canary")), want: "the name of a host is required"},
		"no organization": {attrs: attrs{"workspaces": named("network")},
			want: "organization: this argument is required (or the environment variable TF_CLOUD_ORGANIZATION)"},
		"org is a path":    {attrs: with(good, "organization", text("acme/../canary")), want: "this cannot be the name of an organization"},
		"org is dots":      {attrs: with(good, "organization", text("..")), want: "this cannot be the name of an organization"},
		"workspace's path": {attrs: with(good, "workspaces", named("../canary")), want: "this does not make the name of a workspace"},
		"neither": {attrs: with(good, "workspaces", cty.ObjectVal(attrs{"name": cty.NullVal(cty.String),
			"prefix": cty.NullVal(cty.String)})), want: "one of name and prefix is required, and none has a value"},
		"both": {attrs: with(good, "workspaces", cty.ObjectVal(attrs{"name": text("a"), "prefix": text("b")})),
			want: "prefix and name are mutually exclusive"},
		"another workspace": {attrs: good, workspace: "staging", want: "with name there are no other workspaces"},
		"no default, prefix": {attrs: with(good, "workspaces", prefixed("net-")),
			want: "nothing names the workspace"},
		"no default": {attrs: with(good, "workspaces", cty.NilVal),
			want: "nothing names the workspace"},
		"version is a path": {attrs: with(good, "state_version", text("../canary")), want: "the ID of a state version is required"},
		"version of outputs": {attrs: with(with(good, "state_version", text("sv-1")), "outputs_only", cty.True),
			want: "state_version and outputs_only are mutually exclusive"},
		"CA": {attrs: good, blocks: []attrs{{"url": text("https://tfe.example.com/"), "client_ca_certificate_pem": text("canary")}},
			want: "client_ca_certificate_pem: it holds no certificate in PEM format"},
		"proxy": {attrs: good, blocks: []attrs{{"url": text("https://tfe.example.com/"), "proxy": text("canary")}},
			want: "proxy: a URL is required"},
		"token": {attrs: good, blocks: []attrs{{"url": text("https://tfe.example.com/"), "token": text("canary\n")}},
			want: "token: it " + recognize.Text("x\n", recognize.Word).Said("")},
		"two blocks": {attrs: good, blocks: []attrs{{"url": text("https://tfe.example.com/")}, {"url": text("https://TFE.example.com")}},
			want: "has the same url; one block is enough"},
		"no url": {attrs: good, blocks: []attrs{{"token": text("canary")}}, want: "url: this argument is required"},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range r.attrs {
				if v == cty.NilVal {
					delete(r.attrs, k)
				}
			}
			_, err := ask{attrs: r.attrs, workspace: r.workspace, settings: source.Settings{Credentials: blocks(r.blocks...)}}.open(t)
			fails(t, err, r.want)
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
	if err != nil || len(snap.Warnings) != 1 ||
		!strings.Contains(snap.Warnings[0].Text, "The certificate of https://"+host+" was not verified") {
		t.Fatalf("got %v, %v", snap, err)
	}
	delete(unverified, "skip_cert_verification")
	a.settings.Credentials = blocks(unverified)
	_, err = a.fetch(t)
	fails(t, err, "https://"+host+": "+netfail.UnknownAuthority+
		"set client_ca_certificate_pem in the block with the credentials, with this URL as its url")

	for code, want := range map[int]string{407: "the proxy refused the connection (407 Proxy Authentication Required); check its user " +
		"name and password", 502: "the proxy refused the connection (502 Bad Gateway); check the proxy settings (after 3 tries)"} {
		proxy := httptest.NewServer(saying(code, "canary"))
		t.Cleanup(proxy.Close)
		for _, settings := range []source.Settings{
			{Credentials: blocks(attrs{"url": text("https://tfe.example.com/"), "token": text(readToken),
				"proxy": text(strings.Replace(proxy.URL, "//", "//user:canary@", 1))})},
			{LookupEnv: environment(map[string]string{"HTTPS_PROXY": proxy.URL})},
		} {
			_, err := ask{attrs: network("tfe.example.com"), settings: settings}.fetch(t)
			fails(t, err, want)
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
	fails(t, err, "organization: this argument is required")
	src, err := ask{attrs: attrs{"organization": text("acme"), "workspaces": named("network")}}.open(t)
	if err != nil || src.String() != "workspace acme/network at app.terraform.io" {
		t.Errorf("got %v, %v", src, err)
	}
}

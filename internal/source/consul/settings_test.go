package consul

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/consul/consultest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// Every attribute of the backend has its place here, or a reason to have none.
func TestAttributesOfTheBackend(t *testing.T) {
	leftOut := map[string]string{
		"gzip": "says how to write; what is compressed is always read",
		"lock": "nothing is locked to read",
	}
	for _, name := range []string{
		"path", "access_token", "address", "scheme", "datacenter", "http_auth", "gzip", "lock", "ca_file", "cert_file", "key_file",
	} {
		_, inData := table().Attr(name)
		_, inCredentials := credentials().Attr(name)
		places := 0
		for _, is := range []bool{inData, inCredentials, leftOut[name] != ""} {
			if is {
				places++
			}
		}
		if places != 1 {
			t.Errorf("%s is in the data source (%t), in credentials (%t), or left out (%q)", name, inData, inCredentials, leftOut[name])
		}
	}
	for _, secret := range []string{"access_token", "http_auth"} {
		if a, _ := credentials().Attr(secret); !a.Secrecy.IsHidden() {
			t.Errorf("%s is a secret", secret)
		}
	}
}

func TestKeys(t *testing.T) {
	for _, c := range []struct{ path, workspace, want string }{
		{"network", "default", "network"},
		{"network", "", "network"},
		{"network", "staging", "network-env:staging"},
		{"a/b/c", "staging", "a/b/c-env:staging"},
		{"a/", "default", "a/"},
		{"a/", "staging", "a/-env:staging"},
		{"ä b?c#d%2F", "w~1.x", "ä b?c#d%2F-env:w~1.x"},
	} {
		s := consultest.New(t)
		s.Put(c.want, []byte(stateJSON))
		r := request(t, attrs{"path": text(c.path)}, nil)
		r.Workspace = c.workspace
		src := opened(t, settingsOf(attrs{"address": text(s.URL)}), r)
		if snap := sourcetest.Fetch(t, src); string(snap.Data) != stateJSON {
			t.Errorf("%q, workspace %q: got %q", c.path, c.workspace, snap.Data)
		}
	}
	for _, path := range []string{"", "/", "/a", "a//b", "a//", ".", "..", "a/../b", "../agent/self", "a/.", `a\..\b`, "a\nb", "a\x00"} {
		values, err := unstable.NewEntry("data.x", Kind().Table, attrs{"path": text(path)}).Decode(Kind().Table, nil)
		if err == nil {
			_, err = Kind().Start(settingsOf())(source.Request{Values: values, Workspace: "default"})
		}
		if err == nil || !strings.Contains(err.Error(), ".path: ") {
			t.Errorf("%q: got %v", path, err)
		}
	}
}

func TestString(t *testing.T) {
	settings := settingsOf(attrs{"name": text("prod"), "access_token": text(canary)}, attrs{"access_token": text(canary)})
	for want, a := range map[string]attrs{
		`the key "a/b" in Consul`:                             {},
		`the key "a/b" in Consul, datacenter "dc\x1b"`:        {"datacenter": text("dc\x1b")},
		`the key "a/b" in the Consul "prod"`:                  {"credentials_name": text("prod")},
		`the key "a/b" in the Consul "prod", datacenter "dc"`: {"credentials_name": text("prod"), "datacenter": text("dc")},
	} {
		a["path"] = text("a/b")
		if got := opened(t, settings, request(t, a, nil)).String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestParsePlace(t *testing.T) {
	for _, c := range []struct{ address, scheme, want, socket string }{
		{"", "", "http://localhost:8500", ""},
		{"", "https", "https://localhost:8500", ""},
		{"consul.example.com:8500", "", "http://consul.example.com:8500", ""},
		{"consul.example.com:8501", "https", "https://consul.example.com:8501", ""},
		{"consul.example.com", "", "http://consul.example.com", ""},
		{"http://consul.example.com:8500", "", "http://consul.example.com:8500", ""},
		{"http://consul.example.com:8501", "https", "https://consul.example.com:8501", ""}, // never back to http
		{"https://consul.example.com", "http", "https://consul.example.com", ""},
		{"https://gate.example.com/consul/", "", "https://gate.example.com/consul", ""},
		{"gate.example.com/consul", "", "http://gate.example.com/consul", ""},
		{"[::1]:8500", "", "http://[::1]:8500", ""},
		{"unix:///run/consul.sock", "", "http://localhost", "/run/consul.sock"},
	} {
		p, err := parsePlace(c.address, c.scheme)
		if err != nil || p.base.String() != c.want || p.socket != c.socket {
			t.Errorf("%q, %q: got %s, %q, %v", c.address, c.scheme, p.base.String(), p.socket, err)
		}
	}
	for _, address := range []string{
		"http://", "https:///x", ":8500", "http://user:" + canary + "@host", canary + "@host:1", "host?token=" + canary, "host?", "host#" +
			canary,
		"ftp://" + canary, "unix://", "ho st", "host:" + canary, "\n",
	} {
		if _, err := parsePlace(address, ""); err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%q: got %v", address, err)
		}
	}
	if _, err := parsePlace("", "ftp"); err == nil {
		t.Error("ftp is a scheme")
	}
}

type environment map[string]string

func (e environment) lookup(name string) (string, bool) {
	v, ok := e[name]
	return v, ok
}

// family is an environment with everything set.
var family = environment{
	"CONSUL_HTTP_ADDR": "env.example.com:8501", "CONSUL_HTTP_SSL": "1", "CONSUL_HTTP_TOKEN": "env-token", "CONSUL_HTTP_AUTH": "env:auth",
	"CONSUL_CACERT": "env-ca", "CONSUL_CLIENT_CERT": "env-cert",
	"CONSUL_CLIENT_KEY": "env-key", "CONSUL_TLS_SERVER_NAME": "env-name", "CONSUL_HTTP_SSL_VERIFY": "false", "CONSUL_NAMESPACE": "env-ns",
	"CONSUL_PARTITION": "env-part",
}

// said is what settings come to.
type said struct {
	place                                 place
	token, tokenFile, auth                string
	caFile, certFile, keyFile, serverName string
	unverified                            bool
	namespace, partition                  string
}

func (s settings) said() said {
	return said{
		place: s.place, token: s.String("access_token"), tokenFile: s.String("token_file"), auth: s.String("http_auth"),
		caFile: s.String("ca_file"), certFile: s.String("cert_file"), keyFile: s.String("key_file"), serverName: s.String("tls_server_name"),
		unverified: s.Has("ssl_verify") && !s.Bool("ssl_verify"),
		namespace:  s.String(namespaceVar), partition: s.String(partitionVar),
	}
}

func TestEnvironment(t *testing.T) {
	all := said{
		token: "env-token", auth: "env:auth", caFile: "env-ca", certFile: "env-cert", keyFile: "env-key", serverName: "env-name",
		unverified: true,
		namespace:  "env-ns", partition: "env-part",
	}
	from := func(address, scheme string, s said) said {
		p, err := parsePlace(address, scheme)
		if err != nil {
			t.Fatal(err)
		}
		s.place = p
		return s
	}
	own := attrs{
		"address": text("own.example.com"), "access_token": text("own-token"), "http_auth": text("own:auth"), "ca_file": text("own-ca"),
		"cert_file": text("own-cert"),
		"key_file":  text("own-key"), "tls_server_name": text("own-name"), "ssl_verify": cty.True, "scheme": text("http"),
	}
	named := attrs{"name": text("other")}
	for name, c := range map[string]struct {
		block attrs // nil for none
		env   environment
		ask   string
		want  said
	}{
		"nothing":           {nil, nil, "", from("", "", said{})},
		"environment alone": {nil, family, "", from("env.example.com:8501", "https", all)},
		"empty block":       {attrs{}, family, "", from("env.example.com:8501", "https", all)},
		"named block":       {named, family, "other", from("", "", said{})},
		"own everything, another server": {own, family, "", from("own.example.com", "", said{
			token: "own-token", auth: "own:auth", caFile: "own-ca", certFile: "own-cert", keyFile: "own-key", serverName: "own-name",
		})},
		"another server":  {attrs{"address": text("own.example.com")}, family, "", from("own.example.com", "", said{})},
		"another port":    {attrs{"address": text("env.example.com")}, family, "", from("env.example.com", "", said{})},
		"the same server": {attrs{"address": text("http://ENV.example.com:8501")}, family, "", from("ENV.example.com:8501", "https", all)},
		"a socket":        {attrs{"address": text("unix:///s")}, family, "", from("unix:///s", "", said{})},
		"no address in it": {attrs{"address": text("own.example.com")}, environment{"CONSUL_HTTP_TOKEN": "env-token"}, "",
			from("own.example.com", "", said{token: "env-token"})},
		"a token of its own": {attrs{"access_token": text("own")}, environment{"CONSUL_HTTP_TOKEN": "t", "CONSUL_HTTP_TOKEN_FILE": "f"}, "",
			from("", "", said{token: "own"})},
		"a file of its own": {attrs{"token_file": text("own")}, environment{"CONSUL_HTTP_TOKEN": "t", "CONSUL_HTTP_TOKEN_FILE": "f"}, "",
			from("", "", said{tokenFile: "own"})},
		"token and file": {attrs{}, environment{"CONSUL_HTTP_TOKEN": "t", "CONSUL_HTTP_TOKEN_FILE": "f"}, "",
			from("", "", said{token: "t", tokenFile: "f"})},
		"http, said by scheme": {attrs{"scheme": text("http")}, environment{"CONSUL_HTTP_SSL": "true"}, "", from("", "http", said{})},
		"verified after all":   {attrs{"ssl_verify": cty.True}, environment{"CONSUL_HTTP_SSL_VERIFY": "0"}, "", from("", "", said{})},
		"empty variables": {nil, environment{"CONSUL_HTTP_ADDR": "", "CONSUL_HTTP_SSL_VERIFY": "", "CONSUL_HTTP_SSL": ""}, "",
			from("", "", said{})},
	} {
		t.Run(name, func(t *testing.T) {
			s := settingsOf()
			if c.block != nil {
				s = settingsOf(c.block)
			}
			s.LookupEnv = c.env.lookup
			got, err := choose(s.For(Kind()).Credentials, c.ask)
			if err != nil {
				t.Fatal(err)
			}
			if got := got.said(); got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
	// What is switched off says nothing.
	got, err := choose(settingsOf(attrs{}).For(Kind()).Credentials, "")
	if err != nil || got.Env != nil || got.String("access_token") != "" || got.base.Host != "localhost:8500" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestWrongSettings(t *testing.T) {
	says := sourcetest.OpenMistakes(t, "consul, settings")
	for name, c := range map[string]struct {
		block attrs
		env   environment
	}{
		"two tokens":       {attrs{"access_token": text(canary), "token_file": text("f")}, nil},
		"half a pair":      {attrs{"cert_file": text("f")}, nil},
		"two lines":        {attrs{"access_token": text("a\n" + canary)}, nil},
		"address":          {attrs{"address": text("http://x:" + canary + "@h")}, nil},
		"scheme":           {attrs{"scheme": text("tcp")}, nil},
		"verify":           {nil, environment{"CONSUL_HTTP_SSL_VERIFY": "maybe"}},
		"ssl":              {nil, environment{"CONSUL_HTTP_SSL": "maybe"}},
		"address, by name": {nil, environment{"CONSUL_HTTP_ADDR": "http://x:" + canary + "@h"}},
		"no such name":     {attrs{"name": text("a")}, nil},
	} {
		s := settingsOf()
		if c.block != nil {
			s = settingsOf(c.block)
		}
		s.LookupEnv = c.env.lookup
		_, err := Kind().Start(s)(request(t, attrs{"path": text("a")}, nil))
		says.Error(t, name, err)
	}
}

// seen is what arrived at a server.
type seen struct {
	mu       sync.Mutex
	requests []*http.Request
}

func (s *seen) front(behind http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r)
		s.mu.Unlock()
		behind.ServeHTTP(w, r)
	})
}

// What is sent, of a data source that says everything.
func TestRequest(t *testing.T) {
	var arrived seen
	s := consultest.NewHandler()
	s.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`[{"LockIndex":0,"Key":"a b","Flags":0,"Value":null,"CreateIndex":1,"ModifyIndex":18446744073709551615}]`))
		return true
	}
	server := httptest.NewServer(arrived.front(s))
	t.Cleanup(server.Close)
	env := environment{"CONSUL_HTTP_ADDR": server.URL + "/pre/", "CONSUL_HTTP_TOKEN_FILE": file(t, " env-token\n"),
		"CONSUL_HTTP_TOKEN": "other", "CONSUL_HTTP_AUTH": "me:a:b",
		"CONSUL_NAMESPACE": "env-ns", "CONSUL_PARTITION": "env-part"}
	settings := settingsOf()
	settings.LookupEnv = env.lookup
	a := attrs{"path": text("a b"), "datacenter": text("dc&x"), "namespace": text("own-ns")}
	snap := sourcetest.Fetch(t, opened(t, settings, request(t, a, env.lookup)))
	if snap.Data == nil || len(snap.Data) != 0 || snap.Revision != "18446744073709551615" || snap.Lock != nil || snap.Warnings != nil {
		t.Errorf("got %+v", snap)
	}
	r := arrived.requests[0]
	user, password, _ := r.BasicAuth()
	if r.RequestURI != "/pre/v1/kv/a%20b?dc=dc%26x&ns=own-ns&partition=env-part" || r.Header.Get("X-Consul-Token") != "env-token" ||
		user != "me" || password != "a:b" {
		t.Errorf("got %s %v", r.RequestURI, r.Header)
	}
}

func TestUnixSocket(t *testing.T) {
	s := consultest.NewHandler()
	s.Put("network", []byte(stateJSON))
	path := filepath.Join(t.TempDir(), "s")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Skip(err)
	}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}}
	server.Start()
	t.Cleanup(server.Close)
	settings := settingsOf(attrs{"address": text("unix://" + path), "access_token": text("t")})
	settings.LookupEnv = environment{"HTTP_PROXY": "http://127.0.0.1:1"}.lookup
	if snap := sourcetest.Fetch(t, opened(t, settings, request(t, attrs{"path": text("network")}, nil))); string(snap.Data) != stateJSON ||
		snap.Warnings != nil {
		t.Errorf("got %+v", snap)
	}
}

// A proxy is the user's own, and only where the environment may be used.
func TestProxy(t *testing.T) {
	s := consultest.New(t) // plays every host
	s.Put("network", []byte(stateJSON))
	block := attrs{"address": text("consul.example.com:8500"), "access_token": text(canary)}
	settings := settingsOf(block)
	settings.LookupEnv = environment{"http_proxy": s.URL}.lookup
	snap := sourcetest.Fetch(t, opened(t, settings, request(t, attrs{"path": text("network")}, nil)))
	if string(snap.Data) != stateJSON || len(snap.Warnings) != 1 || !strings.Contains(snap.Warnings[0].Text, "without encryption") {
		t.Errorf("got %+v", snap)
	}
	t.Setenv("HTTP_PROXY", s.URL)
	t.Setenv("CONSUL_HTTP_ADDR", s.URL)
	t.Setenv("CONSUL_HTTP_TOKEN", canary)
	s.Requests()
	settings = settingsOf(attrs{"address": text("consul.invalid:8500")})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	src, err := hurried(new(time.Minute)).Start(settings)(request(t, attrs{"path": text("network")}, nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := src.Fetch(ctx); err == nil || len(s.Requests()) > 0 {
		t.Errorf("got %v; the environment was used, although it is switched off", err)
	}
}

func TestTLS(t *testing.T) {
	s := consultest.NewHandler()
	s.Put("network", []byte(stateJSON))
	servers, clients := nettest.NewAuthority(), nettest.NewAuthority()
	client := clients.Issue(nettest.OfClient("client.example"))
	named := func(c *x509.Certificate) { c.IPAddresses = nil }
	server := httptest.NewUnstartedServer(s)
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{servers.Issue(named, "consul.example").Pair()},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: nettest.Pool(clients.PEM), MinVersion: tls.VersionTLS12,
	}
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	good := func() attrs {
		return attrs{
			"address": text(server.URL), "ca_file": text(file(t, servers.PEM)), "tls_server_name": text("consul.example"),
			"cert_file": text(file(t, client.Chain)), "key_file": text(file(t, client.Key)),
		}
	}
	const warns, fails = "a warning", "an error"
	says := sourcetest.OpenMistakes(t, "consul, TLS")
	for name, c := range map[string]struct {
		change func(attrs)
		want   string
	}{
		"all":                   {change: func(attrs) {}, want: ""},
		"another name":          {change: func(a attrs) { delete(a, "tls_server_name") }, want: fails},
		"another authority":     {change: func(a attrs) { a["ca_file"] = a["cert_file"] }, want: fails},
		"no client certificate": {change: func(a attrs) { delete(a, "cert_file"); delete(a, "key_file") }, want: fails},
		"not verified": {change: func(a attrs) { delete(a, "ca_file"); a["ssl_verify"] = cty.False },
			want: warns},
		"no certificates": {change: func(a attrs) { a["ca_file"] = text(file(t, canary)) },
			want: fails},
		"not its key": {change: func(a attrs) { a["key_file"] = text(file(t, clients.Issue(nil).Key)) },
			want: fails},
		"no such key": {change: func(a attrs) { a["key_file"] = text("/no/such/" + "file") },
			want: fails},
		"two lines in the token": {change: func(a attrs) { a["token_file"] = text(file(t, "a\n"+canary)) }, want: fails},
	} {
		t.Run(name, func(t *testing.T) {
			a := good()
			c.change(a)
			snap, err := opened(t, settingsOf(a), request(t, attrs{"path": text("network")}, nil)).Fetch(t.Context())
			switch {
			case c.want == fails:
				says.Error(t, name, err)
			case err != nil || len(snap.Warnings) > 0 != (c.want == warns):
				t.Errorf("got %+v, %v", snap, err)
			case c.want == warns:
				says.Check(t, name, snap.Warnings[0].Text)
			}
		})
	}
}

// Two blocks: each data source asks the server that it names, with its secrets
// and no others, and the sources of a run share the connections.
func TestNamedBlocks(t *testing.T) {
	var one, two seen
	a, b := consultest.NewHandler(), consultest.NewHandler()
	a.Put("network", []byte("a"))
	b.Put("network", []byte("b"))
	serverA, serverB := httptest.NewServer(one.front(a)), httptest.NewServer(two.front(b))
	t.Cleanup(serverA.Close)
	t.Cleanup(serverB.Close)
	settings := settingsOf(
		attrs{"address": text(serverA.URL), "access_token": text("token-a")},
		attrs{"name": text("b"), "address": text(serverB.URL), "access_token": text("token-b")},
	)
	settings.LookupEnv = environment{"CONSUL_HTTP_AUTH": "env:auth", "CONSUL_NAMESPACE": "x"}.lookup
	open := Kind().Start(settings)
	read := func(name, want string) {
		t.Helper()
		data := attrs{"path": text("network")}
		if name != "" {
			data["credentials_name"] = text(name)
		}
		src, err := open(request(t, data, nil))
		if err != nil {
			t.Fatal(err)
		}
		snap, err := src.Fetch(t.Context())
		if name == "" { // CONSUL_NAMESPACE is for this one, and consultest has no namespaces
			sourcetest.OpenMistakes(t, "consul, namespaces").Error(t, "of a server without them", err)
			return
		}
		if err != nil || string(snap.Data) != want {
			t.Errorf("got %v, %v", snap, err)
		}
	}
	read("", "a")
	read("b", "b")
	read("b", "b")
	if len(one.requests) != 1 || len(two.requests) != 2 {
		t.Fatalf("got %d and %d requests", len(one.requests), len(two.requests))
	}
	if h := one.requests[0].Header; h.Get("X-Consul-Token") != "token-a" || h.Get("Authorization") == "" {
		t.Errorf("got %v", h)
	}
	if h := two.requests[0].Header; h.Get("X-Consul-Token") != "token-b" || h.Get("Authorization") != "" {
		t.Errorf("got %v", h)
	}
	if two.requests[0].RemoteAddr != two.requests[1].RemoteAddr {
		t.Error("the connection is not shared")
	}
	_, err := open(request(t, attrs{"path": text("a"), "credentials_name": text("c")}, nil))
	sourcetest.OpenMistakes(t, "consul, names of blocks").Error(t, "no such name", err)
}

// Opening a source sends and reads nothing.
func TestOpenDoesNothing(t *testing.T) {
	s := settingsOf(attrs{"address": text("127.0.0.1:1"), "ca_file": text("/no/such/file")})
	if _, err := Kind().Start(s)(request(t, attrs{"path": text("a")}, nil)); err != nil {
		t.Error(err)
	}
	var _ source.Kind = Kind()
	if !slices.ContainsFunc(credentials().Attrs, func(a attr.Attr) bool { return a.Name == "name" && !a.Required }) {
		t.Error("the name of a block is not optional")
	}
}

package consul

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/consul/consultest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/clitest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/servertest"
)

// realServer is a real Consul, with access control that denies by default.
type realServer struct{ url string }

const management = "5d1f7c3e-3a59-4b8e-9a52-0d5b3a7b9b11" // the token that may do everything

// startConsul starts the server whose binary STATECRYPT_CONSUL names, with these limits,
// nil for its own. It ends with the test.
func startConsul(t *testing.T, limits map[string]any) *realServer {
	t.Helper()
	program := testkit.Program(t, "STATECRYPT_CONSUL")
	dir := t.TempDir()
	web, rpc, serf := nettest.Port(t), nettest.Port(t), nettest.Port(t)
	config, err := json.Marshal(map[string]any{
		"server": true, "bootstrap": true, "data_dir": filepath.Join(dir, "data"), "node_name": "consultest", "log_level": "ERR",
		"bind_addr": "127.0.0.1", "client_addr": "127.0.0.1", "disable_update_check": true, "performance": map[string]any{"raft_multiplier": 1},
		"ports": map[string]any{"http": json.Number(web), "server": json.Number(rpc), "serf_lan": json.Number(serf), "serf_wan": -1, "dns": -1,
			"grpc": -1, "grpc_tls": -1, "https": -1},
		"limits": limits,
		"acl":    map[string]any{"enabled": true, "default_policy": "deny", "tokens": map[string]any{"initial_management": management}},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "config.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	s := &realServer{url: "http://127.0.0.1:" + web}
	servertest.Start(t, program, []string{"-config-file", file}).Await(t, func() bool {
		// The first write shows that there is a leader, and that it knows the token.
		code, _ := s.do(t, management, http.MethodPut, "/v1/kv/ready", "x")
		return code == http.StatusOK
	})
	return s
}

// do asks the server; the status is 0 where there is no answer.
func (s *realServer) do(t *testing.T, token, method, path, body string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Consul-Token", token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, answer
}

// newToken makes a token with these rules.
func (s *realServer) newToken(t *testing.T, name, rules string) string {
	t.Helper()
	put := func(path string, what any) map[string]any {
		t.Helper()
		body, err := json.Marshal(what)
		if err != nil {
			t.Fatal(err)
		}
		code, answer := s.do(t, management, http.MethodPut, path, string(body))
		var out map[string]any
		if err := json.Unmarshal(answer, &out); err != nil || code != http.StatusOK {
			t.Fatalf("PUT %s: %d, %v, %s", path, code, err, answer)
		}
		return out
	}
	put("/v1/acl/policy", map[string]any{"Name": name, "Rules": rules})
	secret, _ := put("/v1/acl/token", map[string]any{"Policies": []any{map[string]any{"Name": name}}})["SecretID"].(string)
	return secret
}

// States that a real CLI stores in a real Consul are read back with a token
// that has the policy of the example, and nothing else.
func TestRealConsul(t *testing.T) {
	// A large state is refused for its value, once all of it has been read. For the
	// length of the request, the server would answer and close while the CLI still
	// writes, which then sees a broken connection or the answer, as it happens.
	s := startConsul(t, map[string]any{"txn_max_req_len": 64 << 20})
	rules, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "sources", "consul", "policy.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	reader := s.newToken(t, "reader", string(rules))
	read := func(token, path, workspace string, more ...attrs) (*source.Snapshot, error) {
		t.Helper()
		block, data := attrs{"address": text(s.url)}, attrs{"path": text(path)}
		if token != "" {
			block["access_token"] = text(token)
		}
		for _, m := range more {
			for name, v := range m {
				data[name] = v
			}
		}
		r := request(t, data, nil)
		r.Workspace, r.MaxSize = workspace, 64<<20
		src, err := hurried(new(time.Minute)).Start(settingsOf(block))(r)
		if err != nil {
			t.Fatal(err)
		}
		return src.Fetch(t.Context())
	}
	wantError := func(what string, err error, want string) {
		t.Helper()
		if _, missing := source.IsMissing(err); err == nil || missing || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", what, err, want)
		}
	}
	_, err = read(reader, "network", "default")
	if m, ok := source.IsMissing(err); !ok || !m.CredentialsSent {
		t.Errorf("never written: got %v", err)
	}

	for _, cli := range clitest.All(t) {
		for _, gzip := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, gzip %t", cli.Name, gzip), func(t *testing.T) {
				s.do(t, management, http.MethodDelete, "/v1/kv/network?recurse", "")
				p := cli.Project(t, backend("", gzip), "CONSUL_HTTP_ADDR="+s.url, "CONSUL_HTTP_TOKEN="+management)
				check := func(workspace string, parts bool) {
					t.Helper()
					snap, err := read(reader, "network", workspace)
					if err != nil {
						t.Fatal(err)
					}
					_, head := s.do(t, management, http.MethodGet, "/v1/kv/"+keyOf(workspace)+"?raw", "")
					checkStored(t, p, workspace, snap.Data, head, parts, gzip)
				}
				p.Apply(t, "default")
				check("default", false)
				p.Enlarge(t, 800<<10)
				p.Apply(t, "staging-1")
				check("staging-1", true)
			})
		}
	}

	s.do(t, management, http.MethodPut, "/v1/kv/other", stateJSON)
	for _, path := range []string{"other", "never-written"} { // the answer does not tell which of them there is
		_, err = read(reader, path, "default")
		wantError(path, err, `key "`+path+`" {`)
	}
	_, err = read("", "network", "default")
	wantError("no token", err, "(403 Forbidden); set access_token")
	_, err = read("b1e0d2a4-0000-4000-8000-000000000000", "network", "default")
	wantError("unknown token", err, "(403 Forbidden, ACL not found)")
	_, err = read(reader, "network", "default", attrs{"datacenter": text("elsewhere")})
	wantError("datacenter", err, `datacenter "elsewhere"`)
	for _, attr := range []string{"namespace", "partition"} {
		_, err = read(reader, "network", "default", attrs{attr: text("team")})
		wantError(attr, err, "Consul Enterprise")
	}
	if snap, err := read(reader, "network", "default", attrs{"datacenter": text("dc1")}); err != nil || len(snap.Data) == 0 {
		t.Errorf("by the name of the datacenter: got %v", err)
	}
	_, err = read(reader, " network", "default")
	wantError("a space", err, `" network" (500 Internal Server Error)`)
	// Nothing else is allowed to the one who has read all this.
	for _, request := range []string{"PUT /v1/kv/network", "DELETE /v1/kv/network", "GET /v1/acl/tokens", "PUT /v1/session/create"} {
		method, path, _ := strings.Cut(request, " ")
		if code, answer := s.do(t, reader, method, path, ""); code != http.StatusForbidden {
			t.Errorf("%s: the reader is answered %d %s", request, code, answer)
		}
	}
}

// The server of the other tests answers as the real one does.
func TestRealAnswers(t *testing.T) {
	s := startConsul(t, nil)
	reader := s.newToken(t, "one-key", `key "a" { policy = "read" }`)
	fake := consultest.New(t)
	fake.Writable = true
	fake.Tokens = map[string]consultest.Policy{
		management: consultest.Everything, reader: func(verb, key string) bool { return verb == "read" && key == "a" },
		"": func(string, string) bool { return false },
	}
	// Numbers and random names differ.
	differs := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9]+`)
	session := map[string]string{}
	ask := func(url, token, method, path, body string) string {
		t.Helper()
		path = strings.ReplaceAll(path, "{session}", session[url])
		send := func() (*http.Response, error) {
			req, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-Consul-Token", token)
			return (&http.Transport{}).RoundTrip(req) // follows no redirects
		}
		resp, err := send()
		// What is refused for its length may be answered while it is still being written.
		for tries := 0; err != nil && len(body) > consultest.MaxValue && tries < 20; tries++ {
			resp, err = send()
		}
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		if err != nil {
			t.Fatal(err)
		}
		var created struct{ ID string }
		if json.Unmarshal(answer, &created) == nil && created.ID != "" {
			session[url] = created.ID
		}
		index := "no index"
		if n := resp.Header.Get("X-Consul-Index"); n != "" && n != "0" {
			index = "index"
		}
		return fmt.Sprintf("%d, %s, %s%s", resp.StatusCode, index, resp.Header.Get("Location"), differs.ReplaceAllString(string(answer), "N"))
	}
	large := strings.Repeat("x", consultest.MaxValue+1)
	txn := func(verb, key, value, index string) string {
		return fmt.Sprintf(`[{"KV":{"Verb":%q,"Key":%q,"Value":%q,"Flags":0,"Index":%s,"Session":""},"Node":null,"Service":null,"Check":null}]`,
			verb, key, value, index)
	}
	for _, c := range []struct{ token, method, path, body string }{
		{management, "GET", "/v1/kv/a", ""},
		{reader, "GET", "/v1/kv/a", ""},
		{management, "PUT", "/v1/kv/a", "hello"},
		{management, "GET", "/v1/kv/a", ""},
		{reader, "GET", "/v1/kv/a", ""},
		{reader, "GET", "/v1/kv/a?dc=dc1", ""},
		{reader, "GET", "/v1/kv/b", ""},
		{reader, "PUT", "/v1/kv/a", "x"},
		{reader, "DELETE", "/v1/kv/a", ""},
		{"", "GET", "/v1/kv/a", ""},
		{"b1e0d2a4-0000-4000-8000-000000000000", "GET", "/v1/kv/a", ""},
		{management, "GET", "/v1/kv/a?raw", ""},
		{management, "GET", "/v1/kv/a?consistent", ""},
		{management, "GET", "/v1/kv/a?stale&consistent", ""},
		{management, "GET", "/v1/kv/a?dc=elsewhere", ""},
		{management, "GET", "/v1/kv/a?ns=team", ""},
		{management, "GET", "/v1/kv/a?partition=team", ""},
		{management, "GET", "/v1/kv/a?index=x", ""},
		{management, "GET", "/v1/kv/a?index=1&wait=1s", ""},
		{management, "GET", "/v1/kv/a//b", ""},
		{management, "GET", "/v1/kv/", ""},
		{management, "GET", "/elsewhere/v1/kv/a", ""},
		{management, "PUT", "/v1/kv/a", ""},
		{management, "GET", "/v1/kv/a", ""},
		{management, "PUT", "/v1/kv/a/b-env:c", "x"},
		{management, "GET", "/v1/kv/a/b-env:c", ""},
		{management, "PUT", "/v1/kv/a/b/c", "x"},
		{management, "GET", "/v1/kv/a?keys&separator=/", ""},
		{management, "GET", "/v1/kv/a/?keys&separator=/", ""},
		{management, "GET", "/v1/kv/none?keys&separator=/", ""},
		{management, "GET", "/v1/kv/a/?recurse", ""},
		{management, "PUT", "/v1/kv/a?cas=0", "x"},
		{management, "PUT", "/v1/kv/a?flags=7", "x"},
		{management, "GET", "/v1/kv/a", ""},
		{management, "PUT", "/v1/kv/new?cas=0", "x"},
		{management, "PUT", "/v1/kv/large", large},
		{management, "PUT", "/v1/kv/lock?acquire=b1e0d2a4-0000-4000-8000-000000000000", ""},
		{management, "PUT", "/v1/session/create", `{"Name":"Consul API Lock","TTL":"15s","LockDelay":"5000ms"}`},
		{management, "PUT", "/v1/session/renew/{session}", ""},
		{management, "PUT", "/v1/kv/lock?acquire={session}&flags=3304740253564472344", ""},
		{management, "GET", "/v1/kv/lock", ""},
		{management, "PUT", "/v1/kv/lock?acquire={session}", "again"},
		{management, "PUT", "/v1/kv/lock?release={session}&flags=3304740253564472344", ""},
		{management, "PUT", "/v1/kv/lock?release={session}", ""},
		{management, "GET", "/v1/kv/lock", ""},
		{management, "PUT", "/v1/kv/lock?acquire={session}", ""},
		{management, "PUT", "/v1/session/destroy/{session}", ""},
		{management, "GET", "/v1/kv/lock", ""},
		{management, "PUT", "/v1/session/create", `{"Name":"Consul API Lock","TTL":"15s","LockDelay":"5000ms"}`},
		{management, "PUT", "/v1/kv/lock?acquire={session}", ""}, // too early
		{management, "PUT", "/v1/session/renew/b1e0d2a4-0000-4000-8000-000000000000", ""},
		{management, "PUT", "/v1/txn", txn("set", "t", "eA==", "0")},
		{management, "PUT", "/v1/txn", txn("cas", "t", "eA==", "1")},
		{management, "PUT", "/v1/txn", txn("cas", "t2", "eA==", "0")},
		{reader, "PUT", "/v1/txn", txn("set", "a", "eA==", "0")},
		{management, "PUT", "/v1/txn", txn("set", "t", large, "0")},
		{management, "PUT", "/v1/txn", "x"},
		{management, "DELETE", "/v1/kv/a?cas=1", ""},
		{management, "DELETE", "/v1/kv/none", ""},
		{management, "DELETE", "/v1/kv/a?recurse", ""},
		{management, "GET", "/v1/kv/a/b/c", ""},
	} {
		want := ask(s.url, c.token, c.method, c.path, c.body)
		if got := ask(fake.URL, c.token, c.method, c.path, c.body); got != want {
			t.Errorf("%s %s %.80s\nis answered    %.300s\nby Consul with %.300s", c.method, c.path, c.body, got, want)
		}
	}
}

package consul

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/consul/consultest"
)

// realServer is a real Consul, with access control that denies by default.
type realServer struct{ url string }

const management = "5d1f7c3e-3a59-4b8e-9a52-0d5b3a7b9b11" // the token that may do everything

// startConsul starts the server whose binary STATECRYPT_CONSUL names. It ends
// with the test.
func startConsul(t *testing.T) *realServer {
	t.Helper()
	program := os.Getenv("STATECRYPT_CONSUL")
	if program == "" {
		t.Skip("STATECRYPT_CONSUL is not set; make test-services builds a Consul and sets it")
	}
	dir := t.TempDir()
	web, rpc, serf := freePort(t), freePort(t), freePort(t)
	config, err := json.Marshal(map[string]any{
		"server": true, "bootstrap": true, "data_dir": filepath.Join(dir, "data"), "node_name": "consultest", "log_level": "ERR",
		"bind_addr": "127.0.0.1", "client_addr": "127.0.0.1", "disable_update_check": true, "performance": map[string]any{"raft_multiplier": 1},
		"ports": map[string]any{"http": web, "server": rpc, "serf_lan": serf, "serf_wan": -1, "dns": -1, "grpc": -1, "grpc_tls": -1, "https": -1},
		"acl":   map[string]any{"enabled": true, "default_policy": "deny", "tokens": map[string]any{"initial_management": management}},
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, "-config-file", fileIn(t, dir, "config.json", string(config))) //nolint:gosec // the server under test
	cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if text := log.String(); t.Failed() {
			t.Logf("Consul: …%s", text[max(0, len(text)-3000):])
		}
	})
	s := &realServer{url: fmt.Sprintf("http://127.0.0.1:%d", web)}
	wait, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		// The first write shows that there is a leader, and that it knows the token.
		if code, _ := s.do(t, management, http.MethodPut, "/v1/kv/ready", "x"); code == http.StatusOK {
			return s
		}
		select {
		case <-wait.Done():
			t.Fatal("Consul did not start")
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	address, _ := l.Addr().(*net.TCPAddr)
	return address.Port
}

func fileIn(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
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
	s := startConsul(t)
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
		src, err := impatient().Start(settingsOf(block))(r)
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

	for name, program := range clis(t) {
		for _, variant := range []struct{ sealed, gzip bool }{{false, false}, {false, true}, {true, false}, {true, true}} {
			if variant.sealed && name == "terraform" {
				continue
			}
			t.Run(fmt.Sprintf("%s, encrypted %t, gzip %t", name, variant.sealed, variant.gzip), func(t *testing.T) {
				s.do(t, management, http.MethodDelete, "/v1/kv/network?recurse", "")
				s.writeAndRead(t, program, variant.sealed, variant.gzip, func(workspace string) []byte {
					t.Helper()
					snap, err := read(reader, "network", workspace)
					if err != nil {
						t.Fatal(err)
					}
					return snap.Data
				})
			})
		}
	}

	s.do(t, management, http.MethodPut, "/v1/kv/other", stateJSON)
	for _, path := range []string{"other", "never-written"} { // the answer does not tell which of them there is
		_, err = read(reader, path, "default")
		wantError(path, err, `what the token needs is a policy with key "`+path+`"`)
	}
	_, err = read("", "network", "default")
	wantError("no token", err, "without a token (403 Forbidden); set access_token")
	_, err = read("b1e0d2a4-0000-4000-8000-000000000000", "network", "default")
	wantError("unknown token", err, "Consul does not know the token (403 Forbidden, ACL not found)")
	_, err = read(reader, "network", "default", attrs{"datacenter": text("elsewhere")})
	wantError("datacenter", err, `Consul knows no datacenter "elsewhere"`)
	for _, attr := range []string{"namespace", "partition"} {
		_, err = read(reader, "network", "default", attrs{attr: text("team")})
		wantError(attr, err, "only Consul Enterprise has namespaces and partitions")
	}
	if snap, err := read(reader, "network", "default", attrs{"datacenter": text("dc1")}); err != nil || len(snap.Data) == 0 {
		t.Errorf("by the name of the datacenter: got %v", err)
	}
	_, err = read(reader, " network", "default")
	wantError("a space", err, `Consul refuses the name of the key " network" (500 Internal Server Error)`)
	// Nothing else is allowed to the one who has read all this.
	for _, request := range []string{"PUT /v1/kv/network", "DELETE /v1/kv/network", "GET /v1/acl/tokens", "PUT /v1/session/create"} {
		method, path, _ := strings.Cut(request, " ")
		if code, answer := s.do(t, reader, method, path, ""); code != http.StatusForbidden {
			t.Errorf("%s: the reader is answered %d %s", request, code, answer)
		}
	}
}

// writeAndRead writes states with a CLI, of two workspaces and two sizes, and
// reads them.
func (s *realServer) writeAndRead(t *testing.T, program string, sealed, gzip bool, read func(workspace string) []byte) {
	t.Helper()
	c := newCLI(t, program, "CONSUL_HTTP_ADDR="+s.url, "CONSUL_HTTP_TOKEN="+management)
	if sealed {
		c.env = append(c.env, "TF_ENCRYPTION="+encryption)
	}
	c.write(t, "main.tf", backendConfig("", gzip))
	check := func(workspace string, parts bool) {
		t.Helper()
		data := read(workspace)
		key := "network"
		if workspace != "default" {
			key += "-env:" + workspace
		}
		_, head := s.do(t, management, http.MethodGet, "/v1/kv/"+key+"?raw", "")
		if parts != bytes.Contains(head, []byte("current-hash")) || !parts && !gzip && !bytes.Equal(head, data) {
			t.Errorf("%s: got %d bytes, and the key has %d", key, len(data), len(head))
		}
		checkOutputs(t, c, data, workspace, sealed)
	}
	c.run(t, "init")
	c.run(t, "apply", "-auto-approve")
	check("default", false)
	c.run(t, "workspace", "new", "staging")
	vars, _ := json.Marshal(map[string]string{"large": noise(1200 << 10)})
	c.write(t, "terraform.tfvars.json", string(vars))
	c.run(t, "apply", "-auto-approve")
	check("staging", true)
}

// The server of the other tests answers as the real one does.
func TestRealAnswers(t *testing.T) {
	s := startConsul(t)
	reader := s.newToken(t, "one-key", `key "a" { policy = "read" }`)
	fake := consultest.New(t)
	fake.Writable = true
	fake.Tokens = map[string]consultest.Policy{
		management: consultest.Everything, reader: func(verb, key string) bool { return verb == "read" && key == "a" }, "": func(string, string) bool { return false },
	}
	// Numbers and random names differ.
	differs := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9]+`)
	session := map[string]string{}
	ask := func(url, token, method, path, body string) string {
		t.Helper()
		path = strings.ReplaceAll(path, "{session}", session[url])
		req, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Consul-Token", token)
		resp, err := (&http.Transport{}).RoundTrip(req) // follows no redirects
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
		return fmt.Sprintf(`[{"KV":{"Verb":%q,"Key":%q,"Value":%q,"Flags":0,"Index":%s,"Session":""},"Node":null,"Service":null,"Check":null}]`, verb, key, value, index)
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

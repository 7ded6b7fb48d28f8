package openbao_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openbao/openbao/api/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/openbao"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/openbao/openbaotest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// master is the key of the transit engine that the vectors were made with.
func master() []byte { return bytes.Repeat([]byte{0x11}, 32) }

type attrs = testkit.Attrs

func str(s string) cty.Value { return cty.StringVal(s) }

func build(t *testing.T, a attrs, env map[string]string) driver.KeyProvider {
	t.Helper()
	p, err := tryBuild(a, env)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func tryBuild(a attrs, env map[string]string) (driver.KeyProvider, error) {
	return kindtest.TryBuild(openbao.Block(), a, func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	})
}

// sealed is a server that has made a key, with its metadata.
func sealed(t *testing.T, more ...any) (s *openbaotest.Server, base attrs, key, stored []byte) {
	t.Helper()
	s = openbaotest.New(t, master())
	s.Token, s.MakesKeys = "canary-token", true
	base = attrs{}.With("address", s.URL, "key_name", "tofu", "token", "canary-token", "max_retries", 0)
	key, stored = kindtest.NewKey(t, build(t, base.With(more...), nil))
	s.MakesKeys = false
	return s, base, key, stored
}

func TestSuite(t *testing.T) {
	t.Parallel()
	s := openbaotest.New(t, master())
	s.Token, s.MakesKeys = "canary-token", true
	ok := attrs{}.With("address", s.URL, "key_name", "tofu", "token", "canary-token", "max_retries", 0)
	approle := attrs{"role_id": str("r"), "secret_id": str("canary-secret")}
	suite := encryptiontest.KeyProvider{
		Block: openbao.Block(),
		Attrs: ok.With("associated_data", "YWFk"),
		Other: ok.With("key_name", "other", "key_length", 16),
		Bad: []map[string]cty.Value{
			{},
			ok.With("key_name", ""),
			ok.With("key_name", ".."),
			ok.With("key_length", 24),
			ok.With("key_length", 128),
			ok.With("transit_engine_path", "/"),
			ok.With("associated_data", "canary!"),
			ok.With("address", "canary"),
			ok.With("address", "ftp://x"),
			ok.With("address", "https://canary:canary@x"),
			ok.With("address", "https://x?token=canary"),
			ok.With("proxy_address", "canary"),
			ok.With("client_timeout", "canary"),
			ok.With("client_timeout", "0"),
			ok.With("max_retries", -1),
			ok.With("client_cert_file", "/x"),
			ok.With("client_key_pem", "-----BEGIN canary"), ok.With("client_key_pem", "canary"),
			ok.With("ca_cert_file", "/nonexistent"),
			ok.With("ca_cert_pem", "-----BEGIN canary"), ok.With("ca_cert_pem", "~/canary.pem"),
			ok.With("auth_approle", attrs{}),
			ok.With("auth_approle", approle, "auth_jwt", attrs{"jwt": str("canary")}),
			ok.With("auth_jwt", attrs{}),
			ok.With("auth_jwt", attrs{"jwt": str("canary"), "jwt_file": str("/x")}),
		},
		Secrets: []string{"canary"},
	}
	suite.Run(t)
	kindtest.Settings(t, kindtest.OpenMistakes(t, "openbao", suite.Secrets...), suite.Block, suite.Bad)
}

// Data that the program base64 has wrapped is data.
func TestWrappedData(t *testing.T) {
	t.Parallel()
	sealed(t, "associated_data", strings.Repeat("YWFk\n", 4))
}

// A read is one call, and a refused datakey, encrypt or lookup-self harms
// nobody: the server refuses them all.
//
// Promise: Key services
func TestOnlyDecrypt(t *testing.T) {
	t.Parallel()
	s, base, key, stored := sealed(t, "associated_data", "YWFk")
	if want := `,"associated_data":"YWFk"}`; !strings.HasSuffix(string(stored), want) {
		t.Errorf("stored %s, want it to end in %s", stored, want)
	}
	before := len(s.Requests())
	p := build(t, base, nil) // its own associated_data does not matter
	got, err := p.Key(t.Context(), nil, stored)
	if err != nil || !bytes.Equal(got, key) || len(key) != 32 {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	if asked := s.Requests()[before:]; !slices.Equal(asked, []string{"decrypt"}) {
		t.Errorf("asked for %q", asked)
	}
	if _, _, err := p.(driver.KeyMaker).NewKey(t.Context(), nil); !errors.Is(err, driver.ErrNoKey) {
		t.Errorf("the server lets it make keys: %v", err)
	}
}

// TestAssociatedData opens a key with the associated data that its file stores, whatever is
// configured, in one call. It takes a second one if the server ignored the data when it made
// the key, as Vault does: OpenTofu writes such files.
func TestAssociatedData(t *testing.T) {
	t.Parallel()
	s, base, key, stored := sealed(t, "associated_data", "YWFk")
	s.MakesKeys = true
	plainKey, plain, err := build(t, base, nil).(driver.KeyMaker).NewKey(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	bound, other := base.With("associated_data", "YWFk"), base.With("associated_data", "b3RoZXI=")
	for name, c := range map[string]struct {
		attrs  attrs
		stored []byte
		key    []byte // nil: there is none
		calls  int
	}{
		"stored":              {base, stored, key, 1},
		"stored, not ours":    {other, stored, key, 1},
		"stored, but ignored": {base, remember(t, plain, "YWFk"), plainKey, 2},
		"configured later":    {bound, plain, plainKey, 1},
		"lost":                {bound, remember(t, stored, ""), nil, 1},
		"another":             {bound, remember(t, stored, "b3RoZXI="), nil, 2},
		"denied":              {bound.With("token", "canary"), stored, nil, 1},
	} {
		before := len(s.Requests())
		got, err := build(t, c.attrs, nil).Key(t.Context(), nil, c.stored)
		if c.key == nil != errors.Is(err, driver.ErrNoKey) || c.key != nil && (err != nil || !bytes.Equal(got, c.key)) {
			t.Errorf("%s: got %d bytes, %v", name, len(got), err)
		}
		if n := len(s.Requests()) - before; n != c.calls {
			t.Errorf("%s: %d calls", name, n)
		}
	}
}

// A server that does not bind the key would lock the file for good.
func TestUnboundKey(t *testing.T) {
	t.Parallel()
	s, base, _, _ := sealed(t)
	s.MakesKeys, s.Unbound = true, true
	_, _, err := build(t, base.With("associated_data", "YWFk"), nil).(driver.KeyMaker).NewKey(t.Context(), nil)
	if kindtest.OpenMistakes(t, "openbao, sealing").Error(t, "an unbound key", err); errors.Is(err, driver.ErrNoKey) {
		t.Errorf("got %v", err)
	}
}

// remember replaces the associated data in the metadata of a file; none is left if it is "".
func remember(t *testing.T, stored []byte, data string) []byte {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(stored, &m); err != nil {
		t.Fatal(err)
	}
	delete(m, "associated_data")
	if data != "" {
		m["associated_data"] = data
	}
	out, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestLogin(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("canary-jwt\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, base, key, stored := sealed(t)
	s.Namespace = "team/a"
	s.Logins = map[string]map[string]string{
		"auth/approle/login":    {"role_id": "r", "secret_id": "canary-secret"},
		"auth/k8s/login":        {"role": "reader", "jwt": "canary-jwt"},
		"auth/kubernetes/login": {"role": "reader", "jwt": "canary-jwt"},
		"auth/jwt/login":        {"jwt": "canary-jwt"},
	}
	base = base.With("namespace", "team/a", "token", "canary-stale")
	for name, login := range map[string]struct {
		auth    string
		values  attrs
		refused bool
	}{
		"approle":          {auth: "auth_approle", values: attrs{"role_id": str("r"), "secret_id": str("canary-secret")}},
		"kubernetes":       {auth: "auth_kubernetes", values: attrs{"role": str("reader"), "jwt_file": str(file)}},
		"kubernetes mount": {auth: "auth_kubernetes", values: attrs{"role": str("reader"), "jwt": str("canary-jwt"), "mount_path": str("k8s")}},
		"jwt":              {auth: "auth_jwt", values: attrs{"jwt": str("canary-jwt")}},
		"jwt file":         {auth: "auth_jwt", values: attrs{"jwt_file": str(file), "role": str("any")}},
		"wrong secret":     {auth: "auth_approle", values: attrs{"role_id": str("r"), "secret_id": str("canary-wrong")}, refused: true},
		"wrong mount":      {auth: "auth_approle", values: attrs{"role_id": str("r"), "mount_path": str("elsewhere")}, refused: true},
	} {
		before := len(s.Requests())
		p := build(t, base.With(login.auth, login.values), nil)
		for range 3 {
			got, err := p.Key(t.Context(), nil, stored)
			switch {
			case !login.refused && (err != nil || !bytes.Equal(got, key)):
				t.Errorf("%s: %v", name, err)
			case login.refused && (!errors.Is(err, driver.ErrNoKey) || strings.Contains(err.Error(), "canary")):
				t.Errorf("%s: %v", name, err)
			}
		}
		if asked := s.Requests()[before:]; !login.refused && !slices.Equal(asked, []string{"login", "decrypt", "decrypt", "decrypt"}) {
			t.Errorf("%s: asked for %q", name, asked)
		}
	}
	s.Lease = 1 // over before it is used again
	p, before := build(t, base.With("auth_jwt", attrs{"jwt": str("canary-jwt")}), nil), len(s.Requests())
	for _, wait := range []time.Duration{0, time.Second} {
		time.Sleep(wait)
		if _, err := p.Key(t.Context(), nil, stored); err != nil {
			t.Error(err)
		}
	}
	if asked := s.Requests()[before:]; !slices.Equal(asked, []string{"login", "decrypt", "login", "decrypt"}) {
		t.Errorf("a short lease: asked for %q", asked)
	}
	if _, err := build(t, base.With("auth_jwt", attrs{"jwt_file": str("/nonexistent")}), nil).Key(t.Context(), nil, stored); err == nil ||
		errors.Is(err, driver.ErrNoKey) {
		t.Errorf("no file: %v", err)
	}
}

// TestLoginOnce: many at a time share one login.
func TestLoginOnce(t *testing.T) {
	t.Parallel()
	s, base, _, stored := sealed(t)
	s.Logins = map[string]map[string]string{"auth/approle/login": {"role_id": "r"}}
	p := build(t, base.With("auth_approle", attrs{"role_id": str("r")}), nil)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := p.Key(t.Context(), nil, stored); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	logins := slices.DeleteFunc(s.Requests(), func(r string) bool { return r != "login" })
	if len(logins) != 1 {
		t.Errorf("%d logins", len(logins))
	}
}

func answer(status int, body string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
		return true
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	says := kindtest.OpenMistakes(t, "openbao, answers", "vault:v1:")
	for name, c := range map[string]struct {
		status int
		body   string
		noKey  bool // the next method is tried
	}{
		"denied":              {403, `{"errors":["permission denied"]}`, true},
		"bad token":           {403, `{"errors":["2 errors occurred:\n\t* permission denied\n\t* invalid token canary\n\n"]}`, true},
		"unauthorized":        {401, `{"errors":["unauthorized canary"]}`, true},
		"of a proxy":          {403, `<html>canary</html>`, false},
		"no token":            {400, `{"errors":["missing client token"]}`, true},
		"no engine":           {404, `{"errors":["no handler for route \"transit/decrypt/tofu\". route entry not found."]}`, true},
		"not found, empty":    {404, ``, false},
		"not found, page":     {404, `<html>canary</html>`, false},
		"no key":              {400, `{"errors":["encryption key not found"]}`, true},
		"another key":         {400, `{"errors":["cipher: message authentication failed"]}`, true},
		"old version":         {400, `{"errors":["ciphertext or signature version is disallowed by policy (too old)"]}`, true},
		"missing version":     {400, `{"errors":["invalid ciphertext: version is too new"]}`, true},
		"not a ciphertext":    {400, `{"errors":["invalid ciphertext: no prefix"]}`, true},
		"cannot decrypt":      {400, `{"errors":["invalid ciphertext: unable to decrypt canary"]}`, true},
		"wrong kind of key":   {400, `{"errors":["key type ed25519 does not support decryption, canary"]}`, false},
		"wrong request":       {400, `{"errors":["canary"]}`, false},
		"too often":           {429, `{"errors":["request rate limit canary"]}`, false},
		"sealed":              {503, `{"errors":["Vault is sealed canary"]}`, false},
		"broken":              {500, `canary`, false},
		"bad gateway":         {502, `<html>canary</html>`, false},
		"not JSON":            {200, `canary`, false},
		"cut off":             {200, `{"data":{"plaintext":"canary`, false},
		"empty":               {200, ``, false},
		"no content":          {204, ``, false},
		"no data":             {200, `{"data":{}}`, false},
		"empty key":           {200, `{"data":{"plaintext":""}}`, false},
		"key is no base64":    {200, `{"data":{"plaintext":"canary!"}}`, false},
		"key is a number":     {200, `{"data":{"plaintext":12}}`, false},
		"a very long key":     {200, `{"data":{"plaintext":"` + strings.Repeat("A", 2000) + `"}}`, false},
		"an endless answer":   {200, `{"data":{"plaintext":"` + strings.Repeat("A", 2<<20), false},
		"redirect to nowhere": {302, ``, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, base, _, stored := sealed(t)
			s.Fault = answer(c.status, c.body)
			key, err := build(t, base, nil).Key(t.Context(), nil, stored)
			if says.Error(t, name, err); errors.Is(err, driver.ErrNoKey) != c.noKey || key != nil {
				t.Errorf("no key: %t, want %t; %v", !c.noKey, c.noKey, err)
			}
		})
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	s, base, key, stored := sealed(t)
	failed := false
	s.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		if failed {
			return false
		}
		failed = true
		return answer(503, `{"errors":["standby"]}`)(w, r)
	}
	p := build(t, base.With("max_retries", 1), nil)
	openbao.SetRetryWait(p, time.Millisecond)
	if got, err := p.Key(t.Context(), nil, stored); err != nil || !bytes.Equal(got, key) {
		t.Error(err)
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	active, base, key, stored := sealed(t)
	standby := openbaotest.New(t, master())
	standby.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, active.URL+r.URL.Path, http.StatusTemporaryRedirect)
		return true
	}
	base = base.With("address", standby.URL)
	if got, err := build(t, base.With("disable_redirects", false), nil).Key(t.Context(), nil, stored); err != nil || !bytes.Equal(got, key) {
		t.Error(err)
	}
	says := kindtest.OpenMistakes(t, "openbao, redirects")
	for name, to := range map[string]string{
		"plain http": "http://bao.example.com:8200/v1/x",
		"no URL":     "http://%\"canary@x/",
	} {
		standby.Fault = func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusTemporaryRedirect)
			return true
		}
		_, err := build(t, base.With("disable_redirects", false), nil).Key(t.Context(), nil, stored)
		says.Error(t, name, err)
	}
	standby.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, active.URL+r.URL.Path, http.StatusTemporaryRedirect)
		return true
	}
	before := len(active.Requests())
	if _, err := build(t, base, nil).Key(t.Context(), nil, stored); err == nil || errors.Is(err, driver.ErrNoKey) ||
		len(active.Requests()) != before {
		t.Errorf("not to be followed: %v", err)
	}
}

func TestNoAnswer(t *testing.T) {
	t.Parallel()
	s, base, _, stored := sealed(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.Fault = func(_ http.ResponseWriter, r *http.Request) bool {
		cancel()
		<-r.Context().Done()
		return true
	}
	begin := time.Now()
	if _, err := build(t, base, nil).Key(ctx, nil, stored); !errors.Is(err, context.Canceled) || errors.Is(err, driver.ErrNoKey) ||
		time.Since(begin) > 45*time.Second {
		t.Errorf("the context ends: %v after %v", err, time.Since(begin))
	}
	_, err := build(t, base.With("client_timeout", "200ms"), nil).Key(t.Context(), nil, stored)
	says := kindtest.OpenMistakes(t, "openbao, no answer")
	if says.Error(t, "in time", err); errors.Is(err, driver.ErrNoKey) {
		t.Errorf("a timeout: %v", err)
	}
	_, err = build(t, base.With("address", "http://"+nettest.Dead(t)), nil).Key(t.Context(), nil, stored)
	if says.Error(t, "nobody there", err); errors.Is(err, driver.ErrNoKey) {
		t.Errorf("nobody there: %v", err)
	}
	_, err = build(t, base.With("address", strings.Replace(s.URL, "http:", "https:", 1)), nil).Key(t.Context(), nil, stored)
	if says.Error(t, "no TLS there", err); errors.Is(err, driver.ErrNoKey) {
		t.Errorf("no TLS there: %v", err)
	}
}

// Both spellings of the environment count, OpenBao's first, and what is
// configured before either. Without LookupEnv, the process's own environment
// is not looked at.
func TestEnvironment(t *testing.T) {
	s, base, key, stored := sealed(t)
	s.Namespace = "ns"
	delete(base, "address")
	delete(base, "token")
	for name, env := range map[string]map[string]string{
		"bao": {"BAO_ADDR": s.URL, "BAO_TOKEN": "canary-token", "BAO_NAMESPACE": "ns", "BAO_SKIP_VERIFY": "true", "BAO_CLIENT_TIMEOUT": "60",
			"BAO_MAX_RETRIES": "1"},
		"vault": {"VAULT_ADDR": s.URL, "VAULT_TOKEN": "canary-token", "VAULT_NAMESPACE": "ns"},
		"both":  {"BAO_ADDR": s.URL, "VAULT_ADDR": "http://wrong", "BAO_TOKEN": "canary-token", "VAULT_TOKEN": "wrong", "BAO_NAMESPACE": "ns"},
		"agent": {"BAO_ADDR": "http://wrong", "BAO_AGENT_ADDR": s.URL, "BAO_TOKEN": "canary-token", "BAO_NAMESPACE": "ns"},
	} {
		if got, err := build(t, base, env).Key(t.Context(), nil, stored); err != nil || !bytes.Equal(got, key) {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Setenv("BAO_ADDR", "http://127.0.0.1:1")
	t.Setenv("BAO_TOKEN", "wrong")
	t.Setenv("BAO_NAMESPACE", "wrong")
	t.Setenv("BAO_CACERT", "/nonexistent")
	t.Setenv("BAO_WRAP_TTL", "60s")
	configured := base.With("address", s.URL, "token", "canary-token", "namespace", "ns")
	if got, err := build(t, configured, nil).Key(t.Context(), nil, stored); err != nil || !bytes.Equal(got, key) {
		t.Errorf("the environment is read: %v", err)
	}
	_, err := build(t, base.With("address", s.URL, "namespace", "ns"), nil).Key(t.Context(), nil, stored)
	if kindtest.OpenMistakes(t, "openbao, sign-in").Error(t, "no token", err); !errors.Is(err, driver.ErrNoKey) {
		t.Errorf("no token: %v", err)
	}
}

// Of several addresses, the one counts that OpenBao's own client takes: the first in the list,
// which has that of an agent before any other, in either spelling.
func TestOrderOfAddresses(t *testing.T) {
	names := []string{"BAO_AGENT_ADDR", "VAULT_AGENT_ADDR", "BAO_ADDR", "VAULT_ADDR"}
	table := openbao.Block().Table
	for set := range 1 << len(names) {
		want := "https://127.0.0.1:8200"
		for i, name := range slices.Backward(names) {
			address := "http://bao.example.com/" + strings.ToLower(name)
			if t.Setenv(name, address); set>>i&1 == 0 {
				os.Unsetenv(name)
			} else {
				want = address
			}
		}
		client, err := api.NewClient(nil)
		if err != nil || client.Address() != want {
			t.Fatalf("OpenBao's client has %s, not %s: %v", client.Address(), want, err)
		}
		v, err := unstable.NewEntry("openbao", table, attrs{"key_name": str("k")}).Resolve(table, unstable.Scope{Lookup: os.LookupEnv})
		if err != nil || v.String("address") != want {
			t.Errorf("got %s, not %s: %v", v.String("address"), want, err)
		}
	}
}

func TestMetadata(t *testing.T) {
	t.Parallel()
	p := build(t, attrs{"key_name": str("k"), "address": str("http://127.0.0.1:1")}, nil)
	b64 := base64.StdEncoding.EncodeToString
	for doc, noKey := range map[string]bool{
		`{}`:                  true,
		`{"ciphertext":null}`: true,
		`{"ciphertext":"` + b64([]byte("not a transit engine's")) + `"}`:                                                   true,
		`{"ciphertext":"vault:v1:x"}`:                                                                                      false,
		`{"ciphertext":"` + b64([]byte("vault:v1:"+strings.Repeat("A", 64<<10))) + `"}`:                                    false,
		`{"ciphertext":"` + b64([]byte("vault:v1:AAAA")) + `","associated_data":"!"}`:                                      false,
		`{"ciphertext":"` + b64([]byte("vault:v1:AAAA")) + `","associated_data":"` + strings.Repeat("AAAA", 20<<10) + `"}`: false,
	} {
		_, err := p.Key(t.Context(), nil, []byte(doc))
		if err == nil || errors.Is(err, driver.ErrNoKey) != noKey {
			t.Errorf("%.60s: %v", doc, err)
		}
		if p.(driver.Recognizer).Recognizes([]byte(doc)) {
			t.Errorf("%.60s is recognized", doc)
		}
	}
	good := `{"ciphertext":"` + b64([]byte("vault:v12:AAAA")) + `"}`
	d := p.(driver.Deriver)
	if got, err := d.Stored(nil, []byte(good)); err != nil || string(got) != good {
		t.Errorf("%s, %v", got, err)
	}
	for _, bad := range [][2]string{{"", ""}, {"salt", good}, {"salt", ""}, {"", `{"ciphertext":"AAAA"}`}} {
		var salt, wrapped []byte
		if bad[0] != "" {
			salt = []byte(bad[0])
		}
		if bad[1] != "" {
			wrapped = []byte(bad[1])
		}
		if _, err := d.Stored(salt, wrapped); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

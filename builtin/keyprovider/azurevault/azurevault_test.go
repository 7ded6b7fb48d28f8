package azurevault_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/azurevault"
	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/azurevault/azurevaulttest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/kindtest"
)

const canary = "canary"

type attrs = testkit.Attrs

// bare lacks any way to authenticate.
func bare() attrs {
	return attrs{}.With("vault_uri", "https://example.vault.azure.net/", "vault_key_name", "a", "key_length", 32, "use_cli", false)
}

func working() attrs {
	return bare().With("tenant_id", azurevaulttest.Tenant, "client_id", azurevaulttest.ClientID, "client_secret", azurevaulttest.Secret)
}

var privateKeys = sync.OnceValue(func() (keys [2]*rsa.PrivateKey) {
	for i := range keys {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		keys[i] = key
	}
	return keys
})

func service() *azurevaulttest.Service {
	keys := privateKeys()
	return &azurevaulttest.Service{
		RSA:          map[string]*rsa.PrivateKey{"a": keys[0], "b": keys[1]},
		AES:          map[string][]byte{"aes128": make([]byte, 16), "aes192": make([]byte, 24), "aes256": make([]byte, 32)},
		AllowEncrypt: true,
	}
}

func build(t *testing.T, client *http.Client, a attrs) driver.KeyProvider {
	t.Helper()
	return buildWith(t, client, a, func(string) (string, bool) { return "", false })
}

// buildWith switches the environment off where lookup is nil.
func buildWith(t *testing.T, client *http.Client, a attrs, lookup attr.LookupEnv) driver.KeyProvider {
	t.Helper()
	block := azurevault.Block()
	if client != nil {
		block = azurevault.BlockWith(azurevault.Options{Transport: client})
	}
	p := kindtest.Build(t, block, a, lookup)
	azurevault.SetRetryDelay(p, time.Millisecond)
	return p
}

func TestSuite(t *testing.T) {
	t.Parallel()
	for _, symmetric := range []bool{false, true} {
		w := working()
		if symmetric {
			w = w.With("vault_key_name", "aes256", "symmetric", true, "symmetric_key_size", 256)
		}
		suite := encryptiontest.KeyProvider{
			Block: azurevault.BlockWith(azurevault.Options{Transport: service().Start(t)}),
			Attrs: w,
			Other: w.With("vault_key_name", "b"),
			Bad: []map[string]cty.Value{
				attrs{},
				w.With("vault_uri", nil), w.With("vault_key_name", nil), w.With("key_length", nil),
				w.With("vault_uri", "example.vault.azure.net"), w.With("vault_uri", "http://example.vault.azure.net"),
				w.With("vault_uri", "https://u:canary@example.vault.azure.net"), w.With("vault_uri", "https://example.vault.azure.net/?sig=canary"),
				w.With("vault_uri", "https://example.vault.azure.net/keys/a"),
				w.With("vault_uri", "https://ab.vault.azure.net"), w.With("vault_uri", "https://1ab.vault.azure.net"),
				w.With("vault_uri", "https://abc-.vault.azure.net"), w.With("vault_uri", "https://a--b.vault.azure.net"),
				w.With("vault_uri", "https://"+strings.Repeat("a", 25)+".vault.azure.net"),
				w.With("vault_key_name", ""), w.With("vault_key_name", "a/b"), w.With("vault_key_name", "a_b"),
				w.With("vault_key_name", strings.Repeat("a", 128)),
				w.With("key_length", 0), w.With("key_length", 1025), w.With("key_length", 1.5),
				w.With("symmetric", true, "symmetric_key_size", nil), w.With("symmetric", true, "symmetric_key_size", 196),
				w.With("symmetric", true, "symmetric_key_size", 512),
				w.With("environment", "mars"), w.With("metadata_host", "https://host/"), w.With("metadata_host", "host/path"),
				w.With("use_oidc", true, "oidc_request_url", "http://plain.test/canary"), w.With("use_msi", true, "msi_endpoint", "canary"),
			},
			Secrets: []string{azurevaulttest.Secret, azurevaulttest.Token, canary},
		}
		suite.Run(t)
		if !symmetric {
			kindtest.Settings(t, kindtest.OpenMistakes(t, "azure_vault", suite.Secrets...), suite.Block, suite.Bad)
		}
	}
}

func TestAlgorithms(t *testing.T) {
	t.Parallel()
	s := service()
	client := s.Start(t)
	for algorithm, a := range map[string]attrs{
		"RSA-OAEP-256": working(),
		"A128GCM":      working().With("vault_key_name", "aes128", "symmetric", true, "symmetric_key_size", 128),
		"A192GCM":      working().With("vault_key_name", "aes192", "symmetric", true, "symmetric_key_size", 192),
		"A256GCM":      working().With("vault_key_name", "aes256", "symmetric", true, "symmetric_key_size", 256),
	} {
		key, stored := kindtest.NewKey(t, build(t, client, a))
		var m map[string]any
		if err := json.Unmarshal(stored, &m); err != nil {
			t.Fatal(err)
		}
		if len(m) != 6 || m["algo"] != algorithm || m["key_version"] != azurevaulttest.Version ||
			(m["iv"] == nil) != (algorithm == "RSA-OAEP-256") {
			t.Errorf("stored: %s", stored)
		}
		// The file names the algorithm, not the configuration.
		reader := a.With("symmetric", nil, "symmetric_key_size", nil, "key_length", 16)
		if got, err := build(t, client, reader).Key(t.Context(), nil, stored); err != nil || string(got) != string(key) {
			t.Errorf("%s: %d bytes, %v", algorithm, len(got), err)
		}
		delete(m, "algo")
		without, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := build(t, client, a).Key(t.Context(), nil, without); err != nil || string(got) != string(key) {
			t.Errorf("%s, not named: %d bytes, %v", algorithm, len(got), err)
		}
	}
}

func TestHostileMetadata(t *testing.T) {
	t.Parallel()
	s := service()
	p := build(t, s.Start(t), working())
	for _, stored := range []string{
		`{"ciphertext":"AAAA","key_version":"1","algo":"RSA1_5"}`,
		`{"ciphertext":"AAAA","key_version":"1","algo":"RSA-OAEP"}`,
		`{"ciphertext":"AAAA","key_version":"1","algo":"A256CBC"}`,
		`{"ciphertext":"AAAA","key_version":"../../secrets/x","algo":"A256GCM"}`,
		`{"ciphertext":"AAAA","key_version":"?x","algo":"A256GCM"}`,
		`{"ciphertext":"AAAA","iv":"` + strings.Repeat("AAAA", 30) + `","key_version":"1","algo":"A256GCM"}`,
		`{"ciphertext":"AAAA","additional_authenticated_data":"` + strings.Repeat("AAAA", 30000) + `","key_version":"1","algo":"A256GCM"}`,
	} {
		if _, err := p.Key(t.Context(), nil, json.RawMessage(stored)); err == nil || errors.Is(err, driver.ErrNoKey) {
			t.Errorf("%.80s: %v", stored, err)
		}
	}
	if calls := s.Calls(); len(calls) != 0 {
		t.Errorf("the vault was asked: %v", calls)
	}
}

// A read is one decrypt, of the version that the file names, with a vault that
// denies everything else.
func TestOneDecrypt(t *testing.T) {
	t.Parallel()
	key, stored := kindtest.NewKey(t, build(t, service().Start(t), working()))
	s := service()
	s.AllowEncrypt = false
	p := build(t, s.Start(t), working())
	if got, err := p.Key(t.Context(), nil, stored); err != nil || string(got) != string(key) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if calls := s.Calls(); !slices.Equal(calls, []string{"decrypt a/" + azurevaulttest.Version}) {
		t.Errorf("calls: %v", calls)
	}
	_, _, err := p.(driver.KeyMaker).NewKey(t.Context(), nil)
	if kindtest.OpenMistakes(t, "azure_vault, sealing").Error(t, "denied", err); !errors.Is(err, driver.ErrNoKey) {
		t.Errorf("sealing: %v", err)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	_, stored := kindtest.NewKey(t, build(t, service().Start(t), working()))
	says := kindtest.OpenMistakes(t, "azure_vault, answers", azurevaulttest.Secret, azurevaulttest.Token)
	for name, c := range map[string]struct {
		status      int
		code, inner string
		next        bool
	}{
		"not found":  {404, "KeyNotFound", "", true},
		"denied":     {403, "Forbidden", "ForbiddenByPolicy", true},
		"rbac":       {403, "Forbidden", "ForbiddenByRbac", true},
		"disabled":   {403, "Forbidden", "KeyDisabled", true},
		"firewall":   {403, "Forbidden", "ForbiddenByFirewall", false},
		"wrong":      {400, "BadParameter", "", true},
		"token":      {401, "Unauthorized", "", false},
		"throttled":  {429, "Throttled", "", false},
		"broken":     {500, "InternalServerError", "", false},
		"away":       {503, "ServiceUnavailable", "", false},
		"conflict":   {409, "Conflict", "", false},
		"redirected": {307, "Elsewhere", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := service()
			s.Before = func(w http.ResponseWriter, _ *http.Request) bool {
				azurevaulttest.Fail(w, c.status, c.code, c.inner)
				return true
			}
			_, err := build(t, s.Start(t), working()).Key(t.Context(), nil, stored)
			if says.Error(t, name, err); errors.Is(err, driver.ErrNoKey) != c.next {
				t.Fatalf("got %v", err)
			}
			retried := c.status == 429 || c.status >= 500
			if calls := len(s.Calls()); (calls > 1) != retried {
				t.Errorf("%d calls", calls)
			}
		})
	}
}

// Promise: Cost
func TestRetryAfterIsBounded(t *testing.T) {
	t.Parallel()
	_, stored := kindtest.NewKey(t, build(t, service().Start(t), working()))
	s := service()
	s.Before = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "3600")
		azurevaulttest.Fail(w, 429, "Throttled", "")
		return true
	}
	p := build(t, s.Start(t), working())
	azurevault.SetPatience(p, time.Second)
	start := time.Now()
	if _, err := p.Key(t.Context(), nil, stored); err == nil || errors.Is(err, driver.ErrNoKey) || time.Since(start) > 45*time.Second {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
}

func TestCancellation(t *testing.T) {
	t.Parallel()
	key, stored := kindtest.NewKey(t, build(t, service().Start(t), working()))
	s := service()
	arrived, hang := make(chan struct{}, 1), true
	s.Before = func(_ http.ResponseWriter, r *http.Request) bool {
		if hang {
			hang = false
			arrived <- struct{}{}
			<-r.Context().Done()
			return true
		}
		return false
	}
	p := build(t, s.Start(t), working())
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	if _, err := p.Key(ctx, nil, stored); !errors.Is(err, context.Canceled) || errors.Is(err, driver.ErrNoKey) {
		t.Errorf("got %v", err)
	}
	if got, err := p.Key(t.Context(), nil, stored); err != nil || string(got) != string(key) {
		t.Errorf("afterwards: %d bytes, %v", len(got), err)
	}
}

// A challenge on which azkeys would panic, or that asks for a token of
// someone else's service.
func TestHostileChallenge(t *testing.T) {
	t.Parallel()
	_, stored := kindtest.NewKey(t, build(t, service().Start(t), working()))
	for _, challenge := range []string{
		`Bearer authorization="x", resource="https://vault.azure.net"`,
		`Bearer authorization="https://login.microsoftonline.com", resource="https://vault.azure.net"`,
		`Bearer authorization="https://login.microsoftonline.com/t", resource="https://management.azure.com"`,
		`Bearer`, `Bearer authorization=`,
	} {
		client := &http.Client{Transport: answer(func(r *http.Request) *http.Response {
			return &http.Response{StatusCode: 401, Header: http.Header{"Www-Authenticate": {challenge}}, Body: http.NoBody, Request: r}
		})}
		if _, err := build(t, client, working()).Key(t.Context(), nil, stored); err == nil || errors.Is(err, driver.ErrNoKey) {
			t.Errorf("%s: %v", challenge, err)
		}
	}
}

type answer func(*http.Request) *http.Response

func (a answer) RoundTrip(r *http.Request) (*http.Response, error) { return a(r), nil }

func TestDerivedKeys(t *testing.T) {
	t.Parallel()
	d := build(t, nil, working()).(driver.Deriver)
	wrapped := json.RawMessage(`{"ciphertext":"AAAA","key_version":"1","algo":"A256GCM"}`)
	if got, err := d.Stored(nil, wrapped); err != nil || string(got) != string(wrapped) {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := d.Stored([]byte("0123456789abcdef"), wrapped); err == nil {
		t.Error("a salt is accepted")
	}
	for _, bad := range []json.RawMessage{nil, json.RawMessage(`{}`)} {
		if _, err := d.Stored(nil, bad); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

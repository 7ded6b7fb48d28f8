package openbao_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
)

// vault is a real HashiCorp Vault, which has the same transit engine: the one
// that tools/vault builds. STATECRYPT_VAULT names its binary.
type vault struct{ address, token string }

func startVault(t *testing.T) vault {
	t.Helper()
	path := os.Getenv("STATECRYPT_VAULT")
	if path == "" {
		t.Skip("STATECRYPT_VAULT is not set; make test-services builds a Vault and sets it")
	}
	cmd := exec.CommandContext(t.Context(), path) //nolint:gosec // the server under test
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var v vault
	for lines := bufio.NewScanner(stdout); v.token == "" && lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), "=")
		switch name {
		case "VAULT_ADDR":
			v.address = value
		case "VAULT_TOKEN":
			v.token = value
		}
	}
	if v.token == "" {
		t.Fatal("Vault did not say where it is")
	}
	return v
}

// do administers the server, and returns the answer.
func (v vault) do(t *testing.T, method, path string, body map[string]any) map[string]any {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, v.address+"/v1/"+path, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Vault-Token", v.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		t.Fatalf("%s %s: %s", method, path, resp.Status)
	}
	var out map[string]any
	_ = json.NewDecoder(resp.Body).Decode(&out) // some answers are empty
	return out
}

// reader makes a policy with the least that a reader needs, and returns a token
// that has it.
func (v vault) reader(t *testing.T, key string) string {
	t.Helper()
	v.do(t, http.MethodPut, "sys/policies/acl/read-"+key, map[string]any{"policy": `path "transit/decrypt/` + key + `" { capabilities = ["update"] }`})
	auth, _ := v.do(t, http.MethodPost, "auth/token/create", map[string]any{"policies": []string{"read-" + key}, "no_default_policy": true})["auth"].(map[string]any)
	token, _ := auth["client_token"].(string)
	return token
}

func TestRealVault(t *testing.T) {
	t.Parallel()
	v := startVault(t)
	v.do(t, http.MethodPost, "sys/mounts/transit", map[string]any{"type": "transit"})
	for _, key := range []string{"state", "other"} {
		v.do(t, http.MethodPost, "transit/keys/"+key, nil)
	}
	admin := with(nil, "address", v.address, "token", v.token, "key_name", "state", "max_retries", 0)
	maker, ok := build(t, admin, nil).(encryption.KeyMaker)
	if !ok {
		t.Fatal("it makes no keys")
	}
	key, stored, err := maker.NewKey(t.Context(), nil)
	if err != nil || len(key) != 32 {
		t.Fatalf("a new key: %d bytes, %v", len(key), err)
	}
	damaged, err := json.Marshal(map[string][]byte{"ciphertext": []byte("vault:v1:" + base64.StdEncoding.EncodeToString(make([]byte, 60)))})
	if err != nil {
		t.Fatal(err)
	}
	later, err := json.Marshal(map[string][]byte{"ciphertext": []byte("vault:v9:" + base64.StdEncoding.EncodeToString(make([]byte, 60)))})
	if err != nil {
		t.Fatal(err)
	}
	reader := with(admin, "token", v.reader(t, "state"))
	for name, c := range map[string]struct {
		attrs  attrs
		stored []byte
		want   string // "" when the key comes; otherwise a part of the error, which is that there is no key
	}{
		"least privilege":       {reader, stored, ""},
		"approle":               {with(admin, "token", "", "auth_approle", v.appRole(t)), stored, ""},
		"another key":           {with(admin, "key_name", "other"), stored, "the key is another one"},
		"no such key":           {with(admin, "key_name", "gone"), stored, "there is no such key"},
		"no such engine":        {with(admin, "transit_engine_path", "elsewhere"), stored, "transit_engine_path"},
		"another reader":        {with(reader, "token", v.reader(t, "other")), stored, "denies it"},
		"unknown token":         {with(reader, "token", "canary"), stored, "denies it"},
		"no token":              {with(reader, "token", ""), stored, "asks for a token"},
		"damaged":               {reader, damaged, "the key is another one"},
		"a version yet to come": {reader, later, "version of the key is not there"},
	} {
		got, err := build(t, c.attrs, nil).Key(t.Context(), nil, c.stored)
		switch {
		case c.want == "" && (err != nil || !bytes.Equal(got, key)):
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (!errors.Is(err, encryption.ErrNoKey) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "canary")):
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}

	// A version that the owner has retired.
	v.do(t, http.MethodPost, "transit/keys/state/rotate", nil)
	v.do(t, http.MethodPost, "transit/keys/state/config", map[string]any{"min_decryption_version": 2})
	if _, err := build(t, reader, nil).Key(t.Context(), nil, stored); !errors.Is(err, encryption.ErrNoKey) || !strings.Contains(err.Error(), "disabled") {
		t.Errorf("a retired version: %v", err)
	}
}

// appRole makes a role that may read, and returns what a login with it needs.
func (v vault) appRole(t *testing.T) attrs {
	t.Helper()
	v.reader(t, "state")
	v.do(t, http.MethodPost, "sys/auth/approle", map[string]any{"type": "approle"})
	v.do(t, http.MethodPost, "auth/approle/role/ci", map[string]any{"token_policies": []string{"read-state"}})
	role, _ := v.do(t, http.MethodGet, "auth/approle/role/ci/role-id", nil)["data"].(map[string]any)
	secret, _ := v.do(t, http.MethodPost, "auth/approle/role/ci/secret-id", nil)["data"].(map[string]any)
	roleID, _ := role["role_id"].(string)
	secretID, _ := secret["secret_id"].(string)
	return with(nil, "role_id", roleID, "secret_id", secretID)
}

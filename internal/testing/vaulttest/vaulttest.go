// Package vaulttest runs a real HashiCorp Vault for tests. The server, built by tools/vault, keeps its data in memory,
// and supports the transit engine and the AppRole login.
package vaulttest

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/servertest"
)

// Vault is a server that runs until the test ends.
type Vault struct{ Address, Token string } // Token is the root token

// Start starts the server whose binary STATECRYPT_VAULT names, with a transit engine that has the given keys. If the
// variable is not set, the test is skipped.
func Start(tb testing.TB, keys ...string) Vault {
	tb.Helper()
	server := servertest.Start(tb, testkit.Program(tb, "STATECRYPT_VAULT"), nil)
	var v Vault
	server.Await(tb, func() bool {
		for line := range strings.Lines(server.Output()) {
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			switch name {
			case "VAULT_ADDR":
				v.Address = value
			case "VAULT_TOKEN":
				v.Token = value
			}
		}
		return v.Address != "" && v.Token != ""
	})
	v.Do(tb, http.MethodPost, "sys/mounts/transit", map[string]any{"type": "transit"})
	for _, key := range keys {
		v.Do(tb, http.MethodPost, "transit/keys/"+key, nil)
	}
	return v
}

// Do sends an administration request, and returns the response.
func (v Vault) Do(tb testing.TB, method, path string, body map[string]any) map[string]any {
	tb.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		tb.Fatal(err)
	}
	var out map[string]any
	answer := servertest.Do(tb, method, v.Address+"/v1/"+path, string(b), 0, "X-Vault-Token", v.Token)
	_ = json.Unmarshal(answer, &out) // some responses are empty
	return out
}

// Policy creates a policy with the minimal permissions for reading this key, and returns its name.
func (v Vault) Policy(tb testing.TB, key string) string {
	tb.Helper()
	name := "read-" + key
	v.Do(tb, http.MethodPut, "sys/policies/acl/"+name, map[string]any{"policy": `path "transit/decrypt/` + key +
		`" { capabilities = ["update"] }`})
	return name
}

// Reader returns a token with only the permissions of [Vault.Policy].
func (v Vault) Reader(tb testing.TB, key string) string {
	tb.Helper()
	body := map[string]any{"policies": []string{v.Policy(tb, key)}, "no_default_policy": true}
	return text(v.Do(tb, http.MethodPost, "auth/token/create", body), "auth", "client_token")
}

// AppRole returns the RoleID and the SecretID of a role with the same permissions.
func (v Vault) AppRole(tb testing.TB, key string) (roleID, secretID string) {
	tb.Helper()
	v.Do(tb, http.MethodPost, "sys/auth/approle", map[string]any{"type": "approle"})
	v.Do(tb, http.MethodPost, "auth/approle/role/ci", map[string]any{"token_policies": []string{v.Policy(tb, key)}})
	return text(v.Do(tb, http.MethodGet, "auth/approle/role/ci/role-id", nil), "data", "role_id"),
		text(v.Do(tb, http.MethodPost, "auth/approle/role/ci/secret-id", nil), "data", "secret_id")
}

func text(answer map[string]any, member, name string) string {
	m, _ := answer[member].(map[string]any)
	value, _ := m[name].(string)
	return value
}

package sops_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/openbao"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/vaulttest"
)

// TestRealVault opens what the real sops encrypted by a real Vault, with a
// token that may only decrypt.
func TestRealVault(t *testing.T) {
	v := vaulttest.Start(t)
	v.Do(t, http.MethodPost, "sys/mounts/team/transit", map[string]any{"type": "transit"})
	v.Do(t, http.MethodPost, "team/transit/keys/state", nil)
	v.Do(t, http.MethodPut, "sys/policies/acl/reader", map[string]any{"policy": `path "team/transit/decrypt/state" { capabilities = ` +
		`["update"] }`})
	auth, _ := v.Do(t, http.MethodPost, "auth/token/create", map[string]any{"policies": []string{"reader"},
		"no_default_policy": true})["auth"].(map[string]any)
	token, _ := auth["client_token"].(string)
	identity, recipient := newAge(t)

	plain := filepath.Join(t.TempDir(), "terraform.tfstate")
	if err := os.WriteFile(plain, []byte(plainState), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"VAULT_ADDR=" + v.Address, "VAULT_TOKEN=" + v.Token}
	one := runSops(t, env, "encrypt", "--hc-vault-transit", v.Address+"/v1/team/transit/keys/state", "--input-type", "json", "--output-type",
		"json", plain)
	engine := attrs{"allowed_vault_addresses": texts(v.Address + "/v1/team/transit")}
	opens(t, build(t, engine, environment("VAULT_TOKEN", token), openbao.Block()), one, plainState)
	fails(t, build(t, engine, environment("VAULT_TOKEN", "wrong"), openbao.Block()), one, true)
	for _, other := range []string{v.Address, "http://127.0.0.1:1"} {
		fails(t, build(t, nil, environment("VAULT_ADDR", other, "VAULT_TOKEN", token), openbao.Block()), one, false)
	}

	// Two key groups, of which both are needed.
	rules := filepath.Join(t.TempDir(), ".sops.yaml")
	text := "creation_rules:\n  - shamir_threshold: 2\n    key_groups:\n      - age: [" + recipient + "]\n      - hc_vault: [" + v.Address +
		"/v1/team/transit/keys/state]\n"
	if err := os.WriteFile(rules, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	two := runSops(t, env, "--config", rules, "encrypt", "--input-type", "json", "--output-type", "json", plain)
	both := attrs{
		"age_identities": texts(identity), "vault_token": cty.StringVal(token), "allowed_vault_addresses": engine["allowed_vault_addresses"],
	}
	opens(t, build(t, both, nil, openbao.Block()), two, plainState)
	delete(both, "age_identities")
	fails(t, build(t, both, nil, openbao.Block()), two, true)
}

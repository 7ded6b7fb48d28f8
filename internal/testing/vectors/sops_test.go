package vectors_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin/keyprovider/openbao/openbaotest"
	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/tfstate"
)

// TestSopsVectors reads files that terraform-backend-git wrote in its sops mode,
// as they are in git. What it served for them is there as well.
func TestSopsVectors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		age, pgp bool
		then     string
	}{
		"tbg_sops_age":                      {age: true},
		"tbg_sops_age_over_tofu_encryption": {age: true, then: "method.aes_gcm.m"},
		"tbg_sops_pgp":                      {pgp: true},
		"tbg_sops_shamir_2of3":              {age: true, pgp: true},
		"tbg_sops_shamir_age_pgp":           {age: true, pgp: true},
		"tbg_sops_vault":                    {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := func(file string) []byte {
				dir := "../../../conformance/cases"
				if name == "tbg_sops_vault" { // it requires a server
					dir = "testdata"
				}
				b, err := os.ReadFile(filepath.Join(dir, name, file))
				if err != nil {
					t.Fatal(err)
				}
				return b
			}
			// The address of the server is in the file, where nothing protects it.
			vault := openbaotest.New(t, bytes.Repeat([]byte{0x11}, 32))
			vault.Token = "s.throwaway-token"
			file := bytes.ReplaceAll(read("state.raw"), []byte("http://127.0.0.1:18299"), []byte(vault.URL))
			text := "method \"sops\" \"m\" {\nuse_gpg = false\n"
			if c.age {
				text += fmt.Sprintf("age_identities = [%q]\n", read("age_identity.txt"))
			}
			if c.pgp {
				text += fmt.Sprintf("pgp_private_keys = [%q]\n", read("pgp_private.asc"))
			}
			if c.then != "" {
				text += "then = " + c.then + "\n"
			}
			text += "}\n"
			if c.then != "" {
				text += string(read("config.hcl"))
			}
			env := map[string]string{"VAULT_ADDR": vault.URL, "VAULT_TOKEN": vault.Token}
			opened, err := openSops(t, text, env, bytes.Clone(file))
			if err != nil {
				t.Fatal(err)
			}
			if asked := vault.Requests(); name == "tbg_sops_vault" != (len(asked) == 1) || len(asked) > 1 {
				t.Errorf("the server was asked for %q", asked)
			}
			state, err := tfstate.Parse(opened.Data)
			if err != nil {
				t.Fatal(err)
			}
			var want map[string]conformance.Output
			if err := json.Unmarshal(read("expected_outputs.json"), &want); err != nil {
				t.Fatal(err)
			}
			compare(t, state, want)
			if c.then == "" {
				sameDocument(t, opened.Data, read("backend_get_response.json"))
			}

			for what, damaged := range map[string][]byte{
				"the MAC": bytes.Replace(file, []byte(`"mac": "ENC[AES256_GCM,data:`), []byte(`"mac": "ENC[AES256_GCM,data:AAAA`), 1),
				"cut off": file[:len(file)-len(file)/5],
				"a value": bytes.Replace(file, []byte(`"lineage": "ENC[AES256_GCM,data:`), []byte(`"lineage": "ENC[AES256_GCM,data:AAAA`), 1),
				"the order": bytes.Replace(bytes.Replace(file, []byte(`"version"`), []byte(`"versio_"`), 1), []byte(`"serial"`), []byte(`"version"`),
					1),
			} {
				if bytes.Equal(damaged, file) {
					continue // an envelope in it has other names
				}
				if _, err := openSops(t, text, env, damaged); err == nil {
					t.Errorf("it opens, although %s was changed", what)
				}
			}
			delete(env, "VAULT_ADDR")
			before := len(vault.Requests())
			if _, err := openSops(t, text, env, bytes.Clone(file)); name == "tbg_sops_vault" &&
				(err == nil || !strings.Contains(err.Error(), "allowed_vault_addresses") || len(vault.Requests()) != before) {
				t.Errorf("a server that nobody allowed: %v", err)
			}
		})
	}
}

func openSops(t *testing.T, text string, env map[string]string, file []byte) (*encryption.Opened, error) {
	t.Helper()
	lookup := func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}
	enc, err := encryption.Load(patient(), encryption.Code(text, "text"), encryption.Environment(lookup))
	if err != nil {
		t.Fatal(err)
	}
	target, err := enc.Use("method.sops.m")
	if err != nil {
		return nil, err
	}
	return target.Decrypt(t.Context(), file)
}

// sameDocument compares numbers by what they are in sops: float64.
func sameDocument(t *testing.T, got, want []byte) {
	t.Helper()
	var a, b any
	if json.Unmarshal(got, &a) != nil || json.Unmarshal(want, &b) != nil {
		t.Fatal("this is not JSON")
	}
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	if !bytes.Equal(x, y) {
		t.Errorf("got  %s\nwant %s", x, y)
	}
}

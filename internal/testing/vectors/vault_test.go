package vectors_test

import (
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/vaulttest"
)

// What OpenTofu seals with a real Vault, we open, with a token that may only
// decrypt; what we seal with it, OpenTofu opens: states and plans.
func TestRealVaultInterop(t *testing.T) {
	t.Parallel()
	tofu := testkit.Program(t, "STATECRYPT_TOFU")
	vault := vaulttest.Start(t, "tofu")
	const text = `key_provider "openbao" "k" { key_name = "tofu" }
method "aes_gcm" "m" { keys = key_provider.openbao.k }
state {
  method   = method.aes_gcm.m
  enforced = true
}
plan {
  method   = method.aes_gcm.m
  enforced = true
}
`
	// Nothing is remembered from one to the next.
	as := func(token string) *encryption.Encryption {
		t.Helper()
		variables := map[string]string{"BAO_ADDR": vault.Address, "BAO_TOKEN": token}
		lookup := func(name string) (string, bool) {
			v, ok := variables[name]
			return v, ok
		}
		enc, err := encryption.Load(builtin.Registry(), encryption.Code(text, "TF_ENCRYPTION"), encryption.Environment(lookup))
		if err != nil {
			t.Fatal(err)
		}
		return enc
	}
	reader := vault.Reader(t, "tofu")
	target := func(token, kind string) encryption.Target {
		if kind == "plan" {
			return as(token).Plan()
		}
		return as(token).State()
	}
	env := append(gittest.Environ(t.TempDir()), "TF_ENCRYPTION="+text, "CHECKPOINT_DISABLE=1", "TF_INPUT=0", "BAO_ADDR="+vault.Address,
		"BAO_TOKEN="+vault.Token)
	exchange(t, tofu, env, func(kind string, file []byte) []byte {
		data, err := openSealed(target(reader, kind), file)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}, func(kind string, plain []byte) []byte {
		file, err := target(vault.Token, kind).Encrypt(t.Context(), plain)
		if err != nil {
			t.Fatal(err)
		}
		return file
	})
	if _, err := as(reader).State().Encrypt(t.Context(), []byte(interopState)); err == nil {
		t.Error("the token of a reader makes keys")
	}
}

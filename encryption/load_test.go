package encryption_test

import (
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/method/aesgcm"
)

func TestPassphrase(t *testing.T) {
	t.Parallel()
	load := func(layers ...encryption.Layer) *encryption.Encryption {
		enc, err := encryption.Load(builtin.Registry(), layers...)
		if err != nil {
			t.Fatal(err)
		}
		return enc
	}
	const passphrase = "correct-horse-battery-staple"
	byPassphrase, byText := load(encryption.Passphrase(passphrase)), load(encryption.Code(exampleText, "text"))
	for plain, target := range map[string]encryption.Target{state: byPassphrase.State(), plan: byPassphrase.Plan()} {
		file, err := target.Encrypt(t.Context(), []byte(plain))
		if err != nil {
			t.Fatal(err)
		}
		if opened, err := byText.Use("method.aes_gcm.main").Decrypt(t.Context(), file); err != nil || string(opened.Data) != plain {
			t.Errorf("by OpenTofu's text: %v", err)
		}
		if opened, err := target.Decrypt(t.Context(), file); err != nil || string(opened.Data) != plain {
			t.Errorf("%v", err)
		}
		if _, err := target.Decrypt(t.Context(), []byte(plain)); reason(t, err) != "plaintext" {
			t.Errorf("plaintext: %v", err)
		}
	}

	short := load(encryption.Passphrase("short-canary"))
	if _, err := short.State().Encrypt(t.Context(), []byte(state)); err == nil ||
		!strings.Contains(err.Error(), "key_provider.pbkdf2.main.passphrase: the passphrase is too short") ||
		strings.Contains(err.Error(), "canary") {
		t.Errorf("a short one: %v", err)
	}
	own := ownRegistry()
	own.Methods = append(own.Methods[:0:0], aesgcm.Block())
	for _, registry := range []encryption.Registry{{}, own} {
		if _, err := encryption.Load(registry, encryption.Passphrase(passphrase)); err == nil ||
			!strings.Contains(err.Error(), "the registry lacks one of them") || strings.Contains(err.Error(), "horse") {
			t.Errorf("without the kinds: %v", err)
		}
	}
	environment := encryption.Environment(variables("TF_ENCRYPTION", `state { enforced = true }`))
	merged, err := encryption.Load(builtin.Registry(), encryption.Passphrase(passphrase), environment)
	if err != nil || !merged.State().Enforced() || merged.Plan().Enforced() {
		t.Errorf("merged with another layer: %v", err)
	}
}

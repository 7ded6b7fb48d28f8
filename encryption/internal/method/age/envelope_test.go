package age_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/method/aesgcm"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/method/age"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

func target(t *testing.T, text string) encryption.Target {
	t.Helper()
	registry := encryption.Registry{Methods: []driver.Block[driver.Method]{age.Block(), aesgcm.Block()}}
	enc, err := encryption.Load(registry, encryption.Code(text, "test.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	return enc.State()
}

// ours are settings with the identity of x25519.key.
func ours(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("method \"age\" \"m\" { identities = [%q] }\nstate { method = method.age.m }\n", testdata(t, "x25519.key"))
}

// enveloped is what OpenTofu writes if a program for its method external encrypts with
// age.
func enveloped(serial int, file []byte) []byte {
	return fmt.Appendf(nil, `{"serial":%d,"lineage":"l","meta":{},"encrypted_data":%q,"encryption_version":"v0"}`, serial,
		base64.StdEncoding.EncodeToString(file))
}

// An age file inside OpenTofu's envelope opens as one alone does, and the envelope is
// checked as any other.
func TestEnvelope(t *testing.T) {
	t.Parallel()
	const plain = `{"version":4,"serial":3,"lineage":"l","outputs":{},"resources":[]}`
	recipient := public(t, testdata(t, "x25519.key"))
	sealed, err := newMethod(t, "recipients", []string{recipient}).(driver.Encrypter).Encrypt(t.Context(), nil, []byte(plain))
	if err != nil {
		t.Fatal(err)
	}
	opened, err := target(t, ours(t)).Decrypt(t.Context(), enveloped(3, sealed))
	if err != nil || string(opened.Data) != plain || !opened.Encrypted {
		t.Fatalf("%+v, %v", opened, err)
	}
	says := testkit.OpenGolden(t, "../../../testdata/mistakes.txt", "method age, in an envelope", "AGE-SECRET")
	other := fmt.Sprintf("method \"age\" \"m\" { identities = [%q] }\nstate { method = method.age.m }\n", testdata(t, "other.key"))
	for name, c := range map[string]struct {
		text string
		file []byte
		is   error
	}{
		"another serial":   {ours(t), enveloped(4, sealed), driver.ErrDamaged},
		"another identity": {other, enveloped(3, sealed), driver.ErrNoKey},
		"cut off":          {ours(t), enveloped(3, sealed[:len(sealed)-1]), driver.ErrDamaged},
		"not of age":       {ours(t), enveloped(3, []byte("hello")), encryption.ErrNotConfigured},
		"nothing":          {ours(t), enveloped(3, nil), encryption.ErrNotConfigured},
		"no method of age": {"method \"aes_gcm\" \"m\" { keys = {} }\n", enveloped(3, sealed), encryption.ErrNotConfigured},
	} {
		opened, err := target(t, c.text).Decrypt(t.Context(), c.file)
		if says.Error(t, name, err); opened != nil || !errors.Is(err, c.is) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The state and the plan that OpenTofu wrote with someone else's program open with
// either of their identities.
func TestEnvelopeOfAnotherProgram(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"x25519.key", "other.key"} {
		text := fmt.Sprintf("method \"age\" \"m\" { identities = [%q] }\nstate { method = method.age.m }\nplan { method = method.age.m }\n",
			testdata(t, name))
		registry := encryption.Registry{Methods: []driver.Block[driver.Method]{age.Block()}}
		enc, err := encryption.Load(registry, encryption.Code(text, "test.hcl"))
		if err != nil {
			t.Fatal(err)
		}
		opened, err := enc.State().Decrypt(t.Context(), testdata(t, "tofu_age_encryption.tfstate"))
		if err != nil || !strings.Contains(string(opened.Data), `"vpc-1"`) || opened.Kind != encryption.KindState {
			t.Errorf("%s: %v", name, err)
		}
		opened, err = enc.Plan().Decrypt(t.Context(), testdata(t, "tofu_age_encryption.tfplan"))
		if err != nil || !strings.HasPrefix(string(opened.Data), "PK") || opened.Kind != encryption.KindPlan {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A program for OpenTofu's method external, as there are several that call age.
const externalMethod = `#!/bin/sh
printf '{"magic":"OpenTofu-External-Encryption-Method","version":1}\n'
payload=$(sed 's/.*"payload":"\([^"]*\)".*/\1/')
payload=$(printf %s "$payload" | base64 -d | "$@" | base64 | tr -d '\n')
printf '{"payload":"%s"}' "$payload"
`

// What OpenTofu writes with such a program is read without it.
func TestEnvelopeOfOpenTofu(t *testing.T) {
	t.Parallel()
	tofu, program := testkit.Program(t, "STATECRYPT_TOFU"), testkit.Program(t, "STATECRYPT_AGE")
	dir := t.TempDir()
	identity, err := filepath.Abs("testdata/x25519.key")
	if err != nil {
		t.Fatal(err)
	}
	method := filepath.Join(dir, "method.sh")
	settings := fmt.Sprintf("method \"external\" \"age\" {\n  encrypt_command = [%q, %q, \"-r\", %q]\n  decrypt_command = [%[1]q, %[2]q, "+
		"\"-d\", \"-i\", %[4]q]\n}\nstate { method = method.external.age }\n", method, program, public(t, testdata(t, "x25519.key")), identity)
	for name, text := range map[string]string{"method.sh": externalMethod, "main.tf": "output \"x\" { value = \"canary\" }\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), tofu, "apply", "-auto-approve")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TF_ENCRYPTION="+settings, "HOME="+dir, "TF_CLI_CONFIG_FILE="+os.DevNull,
		"CHECKPOINT_DISABLE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	file, err := os.ReadFile(filepath.Join(dir, "terraform.tfstate"))
	if err != nil || strings.Contains(string(file), "canary") {
		t.Fatalf("%s, %v", file, err)
	}
	opened, err := target(t, ours(t)).Decrypt(t.Context(), file)
	if err != nil || !strings.Contains(string(opened.Data), `"canary"`) {
		t.Errorf("got %v", err)
	}
}

package terraformbackendgit_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/method/terraformbackendgit"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/vectortest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

func passphrase(s string) map[string]cty.Value {
	return map[string]cty.Value{"passphrase": cty.StringVal(s)}
}

// The real tool wrote these files. Nothing in them may change.
func TestSuite(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"tbg_aes", "tbg_aes_amend", "tbg_aes_implicit_locked", "tbg_aes_over_tofu_encryption"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := vectortest.Get(t, name)
			secret := v.BackendEnv["TF_BACKEND_HTTP_ENCRYPTION_PASSPHRASE"]
			encryptiontest.Method{
				Block: terraformbackendgit.Block(),
				Attrs: passphrase(secret),
				Other: passphrase(secret + " "),
				Bad:   []map[string]cty.Value{{}, passphrase("")},
				File:  v.State(t), Plain: v.Plain(t),
				Secrets: []string{secret},
			}.Run(t)
		})
	}
}

func build(tb testing.TB, attrs map[string]cty.Value, env attr.LookupEnv) (driver.Method, error) {
	tb.Helper()
	block := terraformbackendgit.Block()
	values, err := entries.NewEntry("method.terraform_backend_git.x", block.Table, attrs).Decode(block.Table, env)
	if err != nil {
		return nil, err
	}
	return block.Build(values)
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	v := vectortest.Get(t, "tbg_aes_implicit_locked")
	lookup := func(name string) (string, bool) {
		value, ok := v.BackendEnv[name]
		return value, ok
	}
	method, err := build(t, nil, lookup)
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := method.Decrypt(t.Context(), nil, v.State(t)); err != nil || !bytes.Equal(plain, v.Plain(t)) {
		t.Errorf("got %q, %v", plain, err)
	}
	_, err = build(t, nil, nil)
	testkit.OpenGolden(t, "../../../testdata/mistakes.txt", "method terraform_backend_git, settings").Error(t, "no passphrase", err)
}

// terraform-backend-git hands out what it cannot decrypt. Here a plaintext state
// or an envelope under this method is an error, and none of a wrong key.
func TestNoPassThrough(t *testing.T) {
	t.Parallel()
	method, err := build(t, passphrase("x"), nil)
	if err != nil {
		t.Fatal(err)
	}
	says := testkit.OpenGolden(t, "../../../testdata/mistakes.txt", "method terraform_backend_git", "serial", "lineage")
	for name, file := range map[string][]byte{
		"state":    vectortest.Get(t, "tbg_plain").State(t),
		"envelope": vectortest.Get(t, "pbkdf2_defaults").State(t),
		"short":    bytes.Repeat([]byte{0xff}, 27),
		"empty":    nil,
	} {
		plain, err := method.Decrypt(t.Context(), nil, bytes.Clone(file))
		if says.Error(t, name, err); plain != nil || errors.Is(err, driver.ErrNoKey) {
			t.Errorf("%s: got %q, %v", name, plain, err)
		}
		if terraformbackendgit.Block().OwnFormat(file) {
			t.Errorf("%s: it recognizes the file", name)
		}
	}
	if !terraformbackendgit.Block().OwnFormat(bytes.Repeat([]byte{0xff}, 28)) {
		t.Error("a nonce and a tag are enough")
	}
	for _, start := range []string{"PK\x03\x04", "{", "age-encryption.org/v1\n", "\x1f\x8b", "\x00"} {
		if !terraformbackendgit.Block().OwnFormat(append([]byte(start), bytes.Repeat([]byte{0xfe}, 40)...)) {
			t.Errorf("a file may begin with %q", start)
		}
	}
}

func TestWarning(t *testing.T) {
	t.Parallel()
	method, err := build(t, passphrase("x"), nil)
	if err != nil {
		t.Fatal(err)
	}
	w := method.(driver.Warner).Warning()
	testkit.OpenGolden(t, "../../../testdata/mistakes.txt", "method terraform_backend_git, warning").Check(t, "weak", w.Title+"\n"+w.Text)
}

func FuzzDecrypt(f *testing.F) {
	v := vectortest.Get(f, "tbg_aes_amend")
	method, err := build(f, passphrase(v.BackendEnv["TF_BACKEND_HTTP_ENCRYPTION_PASSPHRASE"]), nil)
	if err != nil {
		f.Fatal(err)
	}
	plain := v.Plain(f)
	f.Add(v.State(f))
	f.Add(plain)
	f.Add(make([]byte, 28))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, file []byte) {
		own := terraformbackendgit.Block().OwnFormat(file)
		opened, err := method.Decrypt(t.Context(), nil, bytes.Clone(file))
		if err == nil && (!own || !bytes.Equal(opened, plain)) {
			t.Errorf("%q opened to %q", file, opened)
		}
	})
}

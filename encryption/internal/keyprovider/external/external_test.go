//go:build unix

package external_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/keyprovider/external"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

func command(args ...string) map[string]cty.Value {
	return testkit.Attrs{}.With("command", args)
}

// keys makes a folder for the example program.
func keys(t *testing.T, current string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["current"] = current + "\n"
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	exampleProgram = "../../../../examples/external/key-provider.sh"
	firstKey       = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	secondKey      = "Hx4dHBsaGRgXFhUUExIREA8ODQwLCgkIBwYFBAMCAQA="
)

func provider(t *testing.T, args ...string) driver.KeyProvider {
	t.Helper()
	return encryptiontest.Build(t, external.Block(), command(args...))
}

// TestSuite runs with the example program.
func TestSuite(t *testing.T) {
	t.Parallel()
	encryptiontest.KeyProvider{
		Block:    external.Block(),
		Constant: true,
		Attrs:    command(exampleProgram, keys(t, "2026-01", map[string]string{"2026-01": firstKey})),
		Other:    command(exampleProgram, keys(t, "2026-01", map[string]string{"2026-01": secondKey})),
		Bad: []map[string]cty.Value{
			{},
			command(),
			command(""),
			command("", "canary"),
			command("/nonexistent/kp", "canary"),
			command("sh", "-c", "exit 1 # canary"),
		},
		Secrets: []string{"canary", firstKey, secondKey},
	}.Run(t)
}

func TestExampleRotation(t *testing.T) {
	t.Parallel()
	dir := keys(t, "old", map[string]string{"old": firstKey, "new": secondKey})
	p := provider(t, exampleProgram, dir)
	key, stored, err := p.(driver.KeyMaker).NewKey(t.Context(), nil)
	if err != nil || string(stored) != `{"external_data":{"key":"old"}}` {
		t.Fatalf("%s, %v", stored, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "current"), []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if again, err := p.Key(t.Context(), nil, stored); err != nil || !bytes.Equal(again, key) {
		t.Errorf("after the rotation: %v", err)
	}
	for _, bad := range []string{"../old", "missing", "", ".", "a b"} {
		if _, err := p.Key(t.Context(), nil, []byte(`{"external_data":{"key":"`+bad+`"}}`)); !errors.Is(err, driver.ErrNoKey) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// OpenTofu 1.10 and earlier have another way to say that a key for a new file is
// wanted.
func TestExampleWithOlderOpenTofu(t *testing.T) {
	t.Parallel()
	for _, input := range []string{`null`, `{"external_data":null}`} {
		cmd := exec.Command("sh", exampleProgram, keys(t, "main", map[string]string{"main": firstKey}))
		cmd.Stdin = strings.NewReader(input)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), `{"encryption_key":"`+firstKey+`"}`) {
			t.Errorf("%s: %v\n%s", input, err, out)
		}
	}
}

// answering is a program that shows in its key what it was given.
func answering(t *testing.T, body string) driver.KeyProvider {
	t.Helper()
	return provider(t, "sh", "-c", `printf '{"magic":"OpenTofu-External-Key-Provider","version":1}\n'; `+body)
}

func TestInput(t *testing.T) {
	t.Parallel()
	p := answering(t, `printf '{"keys":{"decryption_key":"%s"}}' "$(base64 -w0)"`)
	for stored, want := range map[string]string{
		"":                       `null`,
		`null`:                   `null`,
		`{}`:                     `null`,
		`{"external_data":null}`: `null`,
		`{"external_data":{}}`:   `{"external_data":{}}`,
		`{"x":1,"external_data" : {"b":9007199254740993, "a":"<&>"}}`: `{"external_data":{"a":"\u003c\u0026\u003e","b":9007199254740992}}`,
	} {
		var doc []byte
		if stored != "" {
			doc = []byte(stored)
		}
		if got, err := p.Key(t.Context(), nil, doc); err != nil || string(got) != want {
			t.Errorf("%s: the program is given %s (%v), want %s", stored, got, err, want)
		}
	}
	for _, damaged := range []string{`{`, `{"external_data":[]}`, `{"external_data":1}`, `{"external_data":{"x":"` +
		strings.Repeat("y", 1<<20) + `"}}`} {
		if _, err := p.Key(t.Context(), nil, []byte(damaged)); err == nil || errors.Is(err, driver.ErrNoKey) {
			t.Errorf("%.60s: %v", damaged, err)
		}
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	says := testkit.OpenGolden(t, "../../../testdata/mistakes.txt", "key_provider external", "canary")
	for name, c := range map[string]struct {
		program string
		noKey   bool // the next method is tried
	}{
		"fails":           {`echo canary-not-this >/dev/null; exit 3`, true},
		"no key":          {`printf '{"keys":{"encryption_key":"AAAA"},"meta":{"external_data":{}}}'`, true},
		"empty key":       {`printf '{"keys":{"encryption_key":"AAAA","decryption_key":""}}'`, true},
		"null":            {`printf null`, false},
		"unknown field":   {`printf '{"keys":{"decryption_key":"AAAA"},"canary":1}'`, false},
		"unknown key":     {`printf '{"keys":{"decryption_key":"AAAA","canary":"x"}}'`, false},
		"not base64":      {`printf '{"keys":{"decryption_key":"canary!"}}'`, false},
		"a very long key": {`printf '{"keys":{"decryption_key":"%s"}}' "$(head -c 1025 /dev/zero | base64 -w0)"`, false},
		"nothing":         {``, false},
	} {
		p := answering(t, c.program)
		for _, stored := range []string{`{"external_data":{"k":1}}`, `null`} {
			_, err := p.Key(t.Context(), nil, []byte(stored))
			if says.Error(t, name+", of "+stored, err); errors.Is(err, driver.ErrNoKey) != c.noKey {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, _, err := p.(driver.KeyMaker).NewKey(t.Context(), nil); err == nil && name != "no key" && name != "empty key" {
			t.Errorf("%s: it makes a key", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := answering(t, `sleep 30`).Key(ctx, nil, nil); !errors.Is(err, context.Canceled) || errors.Is(err, driver.ErrNoKey) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestDerivedKeys(t *testing.T) {
	t.Parallel()
	deriver := provider(t, "sh").(driver.Deriver)
	if got, err := deriver.Stored(nil, []byte(`{"external_data":{"key":"a"}}`)); err != nil || string(got) != `{"external_data":{"key":"a"}}` {
		t.Errorf("%s, %v", got, err)
	}
	for _, c := range []struct{ salt, wrapped string }{{"salt", ""}, {"", ""}, {"", `{"ciphertext":"x"}`}, {"salt", `{"external_data":{}}`}} {
		var salt, wrapped []byte
		if c.salt != "" {
			salt = []byte(c.salt)
		}
		if c.wrapped != "" {
			wrapped = []byte(c.wrapped)
		}
		if _, err := deriver.Stored(salt, wrapped); err == nil {
			t.Errorf("%q is accepted", c)
		}
	}
}

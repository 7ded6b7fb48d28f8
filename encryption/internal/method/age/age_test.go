package age_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	realage "filippo.io/age"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/method/age"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

const (
	identityPassphrase = "canary identity passphrase"
	filePassphrase     = "canary file passphrase"
)

func testdata(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// attrs makes attributes of pairs: a name, and a string or a list of strings.
func attrs(pairs ...any) map[string]cty.Value {
	return testkit.Attrs{}.With(pairs...)
}

func build(tb testing.TB, pairs ...any) (driver.Method, error) {
	tb.Helper()
	block := age.Block()
	values, err := entries.NewEntry("method.age.x", block.Table, attrs(pairs...)).Decode(block.Table, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	return block.Build(values)
}

func newMethod(tb testing.TB, pairs ...any) driver.Method {
	tb.Helper()
	m, err := build(tb, pairs...)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// public returns the public key that a comment of an identity file tells.
func public(tb testing.TB, identities []byte) string {
	tb.Helper()
	_, after, ok := bytes.Cut(identities, []byte("# public key: "))
	key, _, _ := bytes.Cut(after, []byte("\n"))
	if !ok {
		tb.Fatal("the identity file does not tell its public key")
	}
	return string(key)
}

// secretsOf are the lines of an identity that must never come out.
func secretsOf(identity string) []string {
	var secrets []string
	for line := range strings.Lines(identity) {
		if line = strings.TrimSpace(line); len(line) > 20 && line[0] != '#' && line[0] != '-' {
			secrets = append(secrets, line[len(line)/2:])
		}
	}
	return secrets
}

// The age program wrote these files, for keys of each kind. There is nothing in
// them that may change, but for white space at the end of an armored one.
func TestSuite(t *testing.T) {
	t.Parallel()
	list := func(files ...string) []string {
		for i := range files {
			files[i] = string(testdata(t, files[i]))
		}
		return files
	}
	x25519, hybrid, protected := list("x25519.key")[0], list("hybrid.key")[0], list("protected.key")[0]
	other := attrs("identities", list("other.key"), "passphrase", "canary another passphrase")
	bad := []map[string]cty.Value{
		{},
		attrs("identities", []string{""}),
		attrs("identities", []string{"canary"}),
		attrs("identities", []string{"AGE-SECRET-KEY-1CANARY"}),
		attrs("identities", []string{"AGE-SECRET-KEY-PQ-1CANARY"}),
		attrs("identities", []string{x25519, x25519[:len(x25519)-2]}),
		attrs("identities", []string{public(t, []byte(x25519))}),
		attrs("identities", []string{"AGE-PLUGIN-YUBIKEY-1CANARY"}),
		attrs("identities", []string{x25519 + "AGE-PLUGIN-YUBIKEY-1CANARY\n"}),
		attrs("identities", list("ssh_ecdsa")),
		attrs("identities", []string{"-----BEGIN OPENSSH PRIVATE KEY-----\ncanary"}),
		attrs("identities", list("ssh_protected")),
		attrs("identities", list("ssh_protected"), "identity_passphrase", "canary wrong"),
		attrs("identities", []string{protected}),
		attrs("identities", []string{protected}, "identity_passphrase", "canary wrong"),
		attrs("identities", []string{protected[:300]}, "identity_passphrase", identityPassphrase),
		attrs("identity_files", []string{"testdata/nobody"}),
		attrs("identity_files", []string{"testdata"}),
		attrs("identity_files", []string{"testdata/state.json"}),
		attrs("recipients", []string{public(t, []byte(x25519))}), // for sealing only
		attrs("recipients", []string{x25519}),
		attrs("recipients", []string{"age1canary"}),
		attrs("recipients", []string{"age1pq1canary"}),
		attrs("recipients", []string{"ssh-rsa canary"}),
		attrs("recipients", []string{"age1yubikey1canary"}),
	}
	sealsFor := func(recipients []string, pairs ...any) map[string]cty.Value {
		return attrs(append(pairs, "recipients", recipients)...)
	}
	toX25519 := []string{public(t, []byte(x25519))}
	for file, own := range map[string]map[string]cty.Value{
		"x25519":      sealsFor(toX25519, "identities", []string{x25519}),
		"armored":     sealsFor(toX25519, "identities", []string{hybrid, x25519}),
		"hybrid":      sealsFor([]string{public(t, []byte(hybrid))}, "identities", []string{hybrid}),
		"ssh_ed25519": sealsFor(list("ssh_ed25519.pub"), "identities", list("ssh_ed25519")),
		"ssh_rsa":     sealsFor(list("ssh_rsa.pub"), "identities", list("ssh_rsa")), // not as a file, which is read and parsed each time
		"passphrase":  attrs("passphrase", filePassphrase),
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			suite := encryptiontest.Method{
				Block: age.Block(), Attrs: own, Other: other, Bad: bad,
				File: testdata(t, file+".age"), Plain: testdata(t, "state.json"),
				Secrets: append(secretsOf(x25519+hybrid+protected+list("ssh_ed25519")[0]), "canary", "CANARY"),
			}
			if file == "armored" {
				suite.Harmless = func(damaged []byte, _ int) bool { return len(damaged) == len(suite.File)-1 } // the line end is missing
			}
			suite.Run(t)
		})
	}
}

// Other ways to give what opens a file.
func TestIdentities(t *testing.T) {
	t.Parallel()
	text := func(name string) string { return string(testdata(t, name)) }
	for name, c := range map[string]struct {
		file  string
		attrs []any
	}{
		"identity file": {"x25519", []any{"identity_files", []string{"testdata/other.key", "testdata/x25519.key"}, "passphrase",
			"another"}},
		"ssh key file":       {"ssh_rsa", []any{"identity_files", []string{"testdata/ssh_rsa"}}},
		"two in one text":    {"x25519", []any{"identities", []string{"\n" + text("hybrid.key") + "\n" + text("x25519.key")}}},
		"Windows":            {"x25519", []any{"identities", []string{strings.ReplaceAll(text("x25519.key"), "\n", "\r\n")}}},
		"protected identity": {"x25519", []any{"identities", []string{text("protected.key")}, "identity_passphrase", identityPassphrase}},
		"protected identity file": {"x25519", []any{"identity_files", []string{"testdata/protected.key"}, "identity_passphrase",
			identityPassphrase}},
		"protected ssh key": {"ssh_protected", []any{"identities", []string{text("ssh_protected")}, "identity_passphrase",
			identityPassphrase}},
		"protected ssh key file": {"ssh_protected", []any{"identity_files", []string{"testdata/ssh_protected"}, "identity_passphrase",
			identityPassphrase}},
		"passphrase or identities": {"passphrase", []any{"identities", []string{text("x25519.key"), text("hybrid.key")}, "passphrase",
			filePassphrase}},
		"identities or passphrase": {"hybrid", []any{"identities", []string{text("x25519.key"), text("hybrid.key")}, "passphrase",
			filePassphrase}},
	} {
		method := newMethod(t, c.attrs...)
		for range 2 {
			plain, err := method.Decrypt(t.Context(), nil, testdata(t, c.file+".age"))
			if err != nil || !bytes.Equal(plain, testdata(t, "state.json")) {
				t.Errorf("%s: got %q, %v", name, plain, err)
			}
		}
	}
}

// TestSealedIdentityEndsInWhiteSpace: the last byte of a binary file may be a space, which
// belongs to it.
func TestSealedIdentityEndsInWhiteSpace(t *testing.T) {
	t.Parallel()
	recipient, err := realage.NewScryptRecipient(identityPassphrase)
	if err != nil {
		t.Fatal(err)
	}
	recipient.SetWorkFactor(2)
	for _, end := range []byte(" \n\t\r") {
		var sealed bytes.Buffer
		for sealed.Len() == 0 || sealed.Bytes()[sealed.Len()-1] != end {
			sealed.Reset()
			w, err := realage.Encrypt(&sealed, recipient)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(testdata(t, "x25519.key")); err != nil || w.Close() != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(t.TempDir(), "key.age")
		if err := os.WriteFile(path, sealed.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		method := newMethod(t, "identity_files", []string{path}, "identity_passphrase", identityPassphrase)
		plain, err := method.Decrypt(t.Context(), nil, testdata(t, "x25519.age"))
		if err != nil || !bytes.Equal(plain, testdata(t, "state.json")) {
			t.Errorf("it ends in %q: got %q, %v", end, plain, err)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	x25519, file := string(testdata(t, "x25519.key")), testdata(t, "x25519.age")
	binary, armored := string(file), string(testdata(t, "armored.age"))
	start := strings.Index(binary, "\n--- ")
	end := start + strings.Index(binary[start+1:], "\n") + 2 // of the header
	withKey := []any{"identities", []string{x25519}}
	says := testkit.OpenGolden(t, "../../../testdata/mistakes.txt", "method age", append(secretsOf(x25519), "canary", "CANARY", "\x1b")...)
	for name, c := range map[string]struct {
		file  string
		attrs []any
		noKey bool
	}{
		"another key": {binary, []any{"identities", []string{string(testdata(t, "other.key"))}},
			true},
		"another kind of key":    {string(testdata(t, "ssh_rsa.age")), withKey, true},
		"a passphrase for a key": {binary, []any{"passphrase", filePassphrase}, true},
		"a key for a passphrase": {string(testdata(t, "passphrase.age")), withKey, true},
		"another passphrase":     {string(testdata(t, "passphrase.age")), []any{"passphrase", "canary"}, true},
		"too much work":          {string(testdata(t, "hard.age")), []any{"passphrase", filePassphrase}, false},
		"much too much work": {strings.Replace(string(testdata(t, "hard.age")), " 21\n", " 63\n", 1),
			[]any{"passphrase", filePassphrase}, false},
		"cut off in the header":  {binary[:start], withKey, false},
		"cut off after it":       {binary[:end], withKey, false},
		"cut off in the payload": {binary[:len(binary)-1], withKey, false},
		"more after the end":     {binary + "x", withKey, false},
		"header of another file": {strings.Replace(binary, "\n--- ", "\n-> grease\n\n--- ", 1), withKey, false},
		"a later version":        {strings.Replace(binary, "/v1", "/v2", 1), withKey, false},
		"a long line":            {"age-encryption.org/v1\n-> " + strings.Repeat("x", 1<<16) + "\x1b[31m\n", withKey, false},
		"an endless header": {"age-encryption.org/v1\n" + strings.Repeat("-> x\n\n", 1<<19), withKey,
			false},
		"armor without an end": {armored[:len(armored)-20], withKey, false},
		"text after the armor": {armored + "x", withKey, false},
		"armor within armor": {"-----BEGIN AGE ENCRYPTED FILE-----\n" + base64.StdEncoding.EncodeToString([]byte("-----BEGIN AGE")) +
			"\n-----END AGE ENCRYPTED FILE-----\n", withKey, false},
		"only the start of armor": {"-----BEGIN AGE ENCRYPTED FILE-----", withKey, false},
		"not age":                 {"hello", withKey, false},
	} {
		start := time.Now()
		plain, err := newMethod(t, c.attrs...).Decrypt(t.Context(), nil, []byte(c.file))
		if says.Error(t, name, err); plain != nil || errors.Is(err, driver.ErrNoKey) != c.noKey {
			t.Errorf("%s: got %q, %v", name, plain, err)
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%s: it took %v", name, took)
		}
	}
	for name, identity := range map[string]string{
		"of a plugin, cut off": "AGE-PLUGIN-YUBIKEY-1CANARY", "with a passphrase": string(testdata(t, "ssh_protected")),
		"of another kind": string(testdata(t, "ssh_ecdsa")), "cut off": "AGE-SECRET-KEY-1CANARY", "none": "canary",
		"a public key": public(t, []byte(x25519)),
	} {
		_, err := newMethod(t, "identities", []string{x25519, identity}).Decrypt(t.Context(), nil, bytes.Clone(file))
		says.Error(t, "the second identity: "+name, err)
	}
}

// Identity files are read when a file is opened, and not before.
func TestIdentityFileIsReadLate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.txt")
	method := newMethod(t, "identity_files", []string{path})
	if _, err := method.Decrypt(t.Context(), nil, testdata(t, "x25519.age")); !errors.Is(err, os.ErrNotExist) ||
		errors.Is(err, driver.ErrNoKey) {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(path, testdata(t, "x25519.key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if plain, err := method.Decrypt(t.Context(), nil, testdata(t, "x25519.age")); err != nil ||
		!bytes.Equal(plain, testdata(t, "state.json")) {
		t.Errorf("got %q, %v", plain, err)
	}
	if err := os.WriteFile(path, append(testdata(t, "x25519.key"), make([]byte, 1<<20)...), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := method.Decrypt(t.Context(), nil, testdata(t, "x25519.age"))
	testkit.OpenGolden(t, "../../../testdata/mistakes.txt", "method age, identity files").Error(t, "too large", err)
}

func TestRecognizes(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]bool{
		"age-encryption.org/v1\n": true, "age-encryption.org/v9\n": true,
		"-----BEGIN AGE ENCRYPTED FILE-----\n": true, "\r\n -----BEGIN AGE ENCRYPTED FILE-----": true,
		"age": false, "-----BEGIN PGP MESSAGE-----": false, " age-encryption.org/v1\n": false, "": false, "{}": false,
	} {
		if age.Block().OwnFormat([]byte(file)) != want {
			t.Errorf("%q: want %t", file, want)
		}
	}
}

// No environment variable is read, not even those of tools around age.
func TestNoEnvironment(t *testing.T) {
	for _, name := range []string{"SOPS_AGE_KEY", "AGE_KEY", "AGE_SECRET_KEY", "AGE_IDENTITY", "AGE_PASSPHRASE"} {
		t.Setenv(name, string(testdata(t, "x25519.key")))
	}
	t.Setenv("AGE_PASSPHRASE", filePassphrase)
	if _, err := build(t); err == nil {
		t.Error("a configuration without anything is accepted")
	}
}

func FuzzDecrypt(f *testing.F) {
	method := newMethod(f, "identities", []string{string(testdata(f, "x25519.key")), string(testdata(f, "ssh_ed25519"))})
	plain := testdata(f, "state.json")
	for _, name := range []string{"x25519.age", "armored.age", "ssh_ed25519.age", "passphrase.age", "state.json"} {
		f.Add(testdata(f, name))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		opened, err := method.Decrypt(t.Context(), nil, bytes.Clone(file))
		if err == nil && (!bytes.Equal(opened, plain) || !age.Block().OwnFormat(file)) {
			t.Errorf("%q opened to %q", file, opened)
		}
	})
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
)

// worded returns settings with a passphrase.
func worded(passphrase string) string {
	return fmt.Sprintf("key_provider \"pbkdf2\" \"p\" { passphrase = %q }\nmethod \"aes_gcm\" \"m\" { keys = key_provider.pbkdf2.p }\n"+
		"state { method = method.aes_gcm.m }\n", passphrase)
}

const (
	oldWords = "the old passphrase"
	newWords = "the new passphrase"
)

// derives returns how many keys a call derives, and what it prints.
func derives(t *testing.T, args ...string) (int, string) {
	t.Helper()
	registry, derived := lighttest.Counting()
	var stdout, stderr bytes.Buffer
	c := &call{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, registry: func() encryption.Registry { return registry }}
	if err := c.dispatch(t.Context(), args); err != nil {
		t.Fatalf("%v: %s%s", err, &stdout, &stderr)
	}
	return int(derived.Load()), stdout.String()
}

// wordedFiles returns the names of files of the old passphrase, each with a salt of its own.
func (r rotating) wordedFiles(t *testing.T, n int) (names []string) {
	t.Helper()
	for i := range n {
		enc, err := encryption.Load(lighttest.Registry(), encryption.Code(worded(oldWords), "old.hcl"))
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := enc.State().Encrypt(t.Context(), []byte(plain))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, r.file(t, fmt.Sprintf("s%d", i), string(sealed)))
	}
	return names
}

func salts(t *testing.T, names []string) (all []string) {
	t.Helper()
	for _, name := range names {
		var envelope struct{ Meta map[string][]byte }
		file, err := os.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(file, &envelope)
		}
		if err != nil || envelope.Meta["key_provider.pbkdf2.p"] == nil {
			t.Fatalf("%v: %s", err, file)
		}
		all = append(all, string(envelope.Meta["key_provider.pbkdf2.p"]))
	}
	return slices.Compact(slices.Sorted(slices.Values(all)))
}

// TestRotateDerives: a rotation derives the old key of each file, and one new key, which opens all of them; none in
// vain.
func TestRotateDerives(t *testing.T) {
	t.Parallel()
	r := newRotating(t)
	from, to := r.file(t, "from.hcl", worded(oldWords)), r.file(t, "to.hcl", worded(newWords))
	const n = 5
	names := r.wordedFiles(t, n)
	old := salts(t, names)
	for _, c := range []struct {
		what  string
		args  []string
		keys  int
		salts int // afterwards
	}{
		{"rotate", append([]string{"rotate", "-from", from, "-to", to}, names...), n + 1, 1},
		{"verify", append([]string{"verify", "-config", to}, names...), 1, 1},
		{"rotate once more", append([]string{"rotate", "-from", from, "-to", to}, names...), 3, 1}, // prepared, and opened by both
		{"rotate again", append([]string{"rotate", "-again", "-to", to}, names...), 2, 1},
		{"rotate, separate", append([]string{"rotate", "-again", "-separate", "-to", to}, names...), n + 1, n},
		{"verify, separate", append([]string{"verify", "-config", to}, names...), n, n},
	} {
		keys, told := derives(t, c.args...)
		if now := salts(t, names); keys != c.keys || len(now) != c.salts || slices.ContainsFunc(now, func(s string) bool {
			return slices.Contains(old, s)
		}) {
			t.Errorf("%s: %d keys derived, %d salts\n%s", c.what, keys, len(now), told)
		}
	}
}

// TestRotateToOldKey: settings that name the old passphrase once more are found, although the old key is tried first
// where these differ.
func TestRotateToOldKey(t *testing.T) {
	t.Parallel()
	r := newRotating(t)
	same := strings.Replace(worded(oldWords), "{ passphrase", "{\n  iterations = 700000\n  passphrase", 1)
	from, to := r.file(t, "from.hcl", worded(oldWords)), r.file(t, "to.hcl", strings.Replace(same, " }\nmethod", "\n}\nmethod", 1))
	names := r.wordedFiles(t, 2)
	if keys, told := derives(t, append([]string{"rotate", "-from", from, "-to", to}, names...)...); keys != 2 ||
		strings.Count(told, "-again") != 2 {
		t.Errorf("%d keys derived: %s", keys, told)
	}
}

// TestRotateStoreDerives: of many states in a store, too, each costs its old key.
func TestRotateStoreDerives(t *testing.T) {
	t.Parallel()
	r := newRotating(t)
	const n = 3
	names := r.wordedFiles(t, n)
	from := r.file(t, "from.hcl", worded(oldWords))
	to := r.file(t, "to.hcl", worded(newWords)+fmt.Sprintf("backend \"file\" { path = %q }\n", filepath.ToSlash(names[0])))
	keys, told := derives(t, "rotate", "-from", from, "-to", to, "-backend", "-prefix", filepath.ToSlash(r.dir)+"/s")
	if keys != n+1 || strings.Count(told, ": rotated") != n || len(salts(t, names)) != 1 {
		t.Errorf("%d keys derived, %d salts: %s", keys, len(salts(t, names)), told)
	}
}

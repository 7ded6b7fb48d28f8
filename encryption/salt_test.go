package encryption_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/iotest"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
)

const oneWord = "method \"aes_gcm\" \"m\" { keys = key_provider.pbkdf2.p }\nstate {\n  method = method.aes_gcm.m\n}\n"

// words returns settings with a passphrase, and more arguments.
func words(passphrase string, more ...string) string {
	return fmt.Sprintf("key_provider \"pbkdf2\" \"p\" {\n  passphrase = %q\n  %s\n}\n", passphrase, strings.Join(more, "\n")) + oneWord
}

const horse = "correct-horse-battery-staple"

// saltOf returns the salt that a file stores.
func saltOf(t *testing.T, file []byte) string {
	t.Helper()
	var envelope struct{ Meta map[string][]byte }
	var document struct{ Salt []byte }
	err := json.Unmarshal(file, &envelope)
	for _, stored := range envelope.Meta {
		err = errors.Join(err, json.Unmarshal(stored, &document))
	}
	if err != nil || len(document.Salt) == 0 {
		t.Fatalf("no salt, %v: %s", err, file)
	}
	return string(document.Salt)
}

func mustSeal(t *testing.T, target encryption.Target) []byte {
	t.Helper()
	file, err := target.Encrypt(t.Context(), []byte(state))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func mustOpen(t *testing.T, target encryption.Target, file []byte) *encryption.Opened {
	t.Helper()
	opened, err := target.Decrypt(t.Context(), file)
	if err != nil || string(opened.Data) != state {
		t.Fatalf("%+v, %v", opened, err)
	}
	return opened
}

// TestOneSalt: files that are sealed with the same settings share a salt, which one derivation opens, and
// nothing else; those of other settings, and of a target that is separate, do not.
//
// Promise: Salts
func TestOneSalt(t *testing.T) {
	t.Parallel()
	registry, derived := lighttest.Counting()
	enc := newEncryption(t, registry, words(horse))
	enc.State().Prepare(t.Context())
	seen := map[string]int{}
	for i := range 5 {
		file := mustSeal(t, enc.State())
		mustOpen(t, enc.State(), file)
		if seen[saltOf(t, file)]++; seen[string(file)] > 0 || seen[saltOf(t, file)] != i+1 || derived.Load() != 1 {
			t.Errorf("file %d, %d derivations: %s", i+1, derived.Load(), file)
		}
		seen[string(file)]++
	}
	separate := enc.State().Separate()
	for _, file := range [][]byte{
		mustSeal(t, separate), mustSeal(t, separate), mustSeal(t, newEncryption(t, registry, words(horse)).State()),
	} {
		mustOpen(t, enc.State(), file)
		if seen[saltOf(t, file)]++; seen[saltOf(t, file)] != 1 {
			t.Errorf("the salt of another file: %s", file)
		}
	}
}

// TestSaltOfReadFile: a program that has opened a file seals none with its salt.
//
// Promise: Salts
func TestSaltOfReadFile(t *testing.T) {
	t.Parallel()
	old := mustSeal(t, newEncryption(t, lighttest.Registry(), words(horse)).State())
	for name, sealed := range map[string]func(t *testing.T, target encryption.Target) ([]byte, error){
		"after it was opened": func(t *testing.T, target encryption.Target) ([]byte, error) {
			mustOpen(t, target, old)
			return target.Encrypt(t.Context(), []byte(state))
		},
		"sealed again": func(t *testing.T, target encryption.Target) ([]byte, error) {
			return mustOpen(t, target, old).Reseal(t.Context(), []byte(state))
		},
		"after a rehearsal": func(t *testing.T, target encryption.Target) ([]byte, error) {
			if tried := mustSeal(t, mustOpen(t, target, old).Rehearsal()); saltOf(t, tried) != saltOf(t, old) {
				t.Error("the rehearsal had another key")
			}
			return target.Encrypt(t.Context(), []byte(state))
		},
		"separate": func(t *testing.T, target encryption.Target) ([]byte, error) {
			mustOpen(t, target, old)
			return target.Separate().Encrypt(t.Context(), []byte(state))
		},
		"after it was closed": func(t *testing.T, target encryption.Target) ([]byte, error) {
			return target.Encrypt(t.Context(), []byte(state))
		},
	} {
		enc := newEncryption(t, lighttest.Registry(), words(horse))
		if name == "after it was closed" {
			mustOpen(t, enc.State(), old)
			enc.Close()
		}
		file, err := sealed(t, enc.State().KeepKeys())
		if err != nil || saltOf(t, file) == saltOf(t, old) {
			t.Errorf("%s: the salt of a file that was read: %v", name, err)
		}
	}
}

// TestRehearsal: a rehearsal derives no key if the next key is derived as that of the file. Otherwise, it
// derives the next key.
func TestRehearsal(t *testing.T) {
	t.Parallel()
	const another = "key_provider \"pbkdf2\" \"old\" { passphrase = \"" + horse + "\" }\n" +
		"method \"aes_gcm\" \"old\" { keys = key_provider.pbkdf2.old }\n"
	fallback := another + strings.Replace(words("another passphrase"), "method.aes_gcm.m\n",
		"method.aes_gcm.m\n  fallback { method = method.aes_gcm.old }\n", 1)
	chain := "key_provider \"static\" \"root\" { key = \"000102030405060708090a0b0c0d0e0f\" }\n" +
		"key_provider \"pbkdf2\" \"p\" { chain = key_provider.static.root }\n" + oneWord
	for name, c := range map[string]struct {
		file, settings string
		derives        int64 // with the derivation that opens the file
		fails          bool
	}{
		"the same":        {words(horse), words(horse), 1, false},
		"another salt":    {words(horse), words(horse, "salt_length = 16"), 2, false},
		"more rounds":     {words(horse), words(horse, "iterations = 700000"), 2, false},
		"another hash":    {words(horse), words(horse, `hash_function = "sha256"`), 2, false},
		"no key of AES":   {words(horse), words(horse, "key_length = 20"), 2, true},
		"by the fallback": {another + "state { method = method.aes_gcm.old }\n", fallback, 2, false},
		"in a chain":      {chain, chain, 2, false},
	} {
		registry, derived := lighttest.Counting()
		file := mustSeal(t, newEncryption(t, lighttest.Registry(), c.file).State())
		target := newEncryption(t, registry, c.settings).State()
		opened := mustOpen(t, target, file)
		tried, err := opened.Rehearsal().Encrypt(t.Context(), []byte(state))
		if err == nil {
			mustOpen(t, target, tried)
		}
		if derived.Load() != c.derives || (err != nil) != c.fails {
			t.Errorf("%s: %d derivations, %v", name, derived.Load(), err)
		}
	}
}

// TestMayShareKey: only where the passphrases differ, a file of one target cannot open with the other.
func TestMayShareKey(t *testing.T) {
	t.Parallel()
	target := func(settings string) encryption.Target {
		return newEncryption(t, lighttest.Registry(), settings).State()
	}
	literal := "key_provider \"static\" \"s\" { key = \"000102030405060708090a0b0c0d0e0f\" }\n" +
		"method \"aes_gcm\" \"s\" { keys = key_provider.static.s }\n"
	chain := literal + "key_provider \"pbkdf2\" \"p\" { chain = key_provider.static.s }\n" + oneWord
	both := literal + strings.Replace(words(horse), "method.aes_gcm.m\n", "method.aes_gcm.s\n  fallback { method = method.aes_gcm.m }\n", 1)
	for name, c := range map[string]struct {
		to, from string
		may      bool
	}{
		"the same":              {words(horse), words(horse), true},
		"more rounds":           {words(horse, "iterations = 700000"), words(horse), true},
		"another":               {words("another passphrase"), words(horse), false},
		"a key in the settings": {words(horse), literal + "state { method = method.aes_gcm.s }", false},
		"as a fallback":         {words(horse), both, true},
		"another as a fallback": {words("another passphrase"), both, false},
		"a chain":               {words(horse), chain, true},
		"to a chain":            {chain, words(horse), true},
		"to no passphrase":      {literal + "state { method = method.aes_gcm.s }", words(horse), true},
		"nothing":               {words(horse), "", false},
		"from nothing":          {"", words(horse), true},
	} {
		if got := target(c.to).MayShareKey(target(c.from)); got != c.may {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestEverySealDraws: salt and nonce come from the random source of the system, and from nothing else, so
// that files differ as it does: a source that repeats makes the same file again.
//
// Promise: Salts
func TestEverySealDraws(t *testing.T) {
	sealed := func(seed uint64) []byte {
		cryptotest.SetGlobalRandom(t, seed)
		return mustSeal(t, newEncryption(t, light.Registry(), words(horse)).State())
	}
	first, same, other := sealed(1), sealed(1), sealed(2)
	if !bytes.Equal(first, same) {
		t.Errorf("something else than the random source is in a file:\n%s\n%s", first, same)
	}
	if saltOf(t, first) == saltOf(t, other) || bytes.Equal(nonce(t, first), nonce(t, other)) {
		t.Errorf("a file does not depend on the random source:\n%s\n%s", first, other)
	}
	cryptotest.SetGlobalRandom(t, 3)
	enc := newEncryption(t, light.Registry(), words(horse))
	var nonces []string
	for range 3 {
		nonces = append(nonces, string(nonce(t, mustSeal(t, enc.State()))))
	}
	cryptotest.SetGlobalRandom(t, 4)
	nonces = append(nonces, string(nonce(t, mustSeal(t, enc.State()))))
	cryptotest.SetGlobalRandom(t, 4)
	repeated := string(nonce(t, mustSeal(t, enc.State())))
	if slices.Sort(nonces); len(slices.Compact(nonces)) != 4 || !slices.Contains(nonces, repeated) {
		t.Errorf("a file was sealed without a nonce of its own: %x, %x", nonces, repeated)
	}
}

func nonce(t *testing.T, file []byte) []byte {
	t.Helper()
	var envelope struct {
		Data []byte `json:"encrypted_data"`
	}
	if err := json.Unmarshal(file, &envelope); err != nil || len(envelope.Data) < 12 {
		t.Fatalf("%v: %s", err, file)
	}
	return envelope.Data[:12]
}

// TestRandomSourceFails: without random bytes, nothing is sealed: the process ends.
//
// Promise: Salts
func TestRandomSourceFails(t *testing.T) {
	const variable = "SEAL_WITHOUT_RANDOM_BYTES"
	if os.Getenv(variable) != "" {
		rand.Reader = iotest.ErrReader(errors.New("nothing is random"))
		_, _ = os.Stdout.Write(mustSeal(t, newEncryption(t, light.Registry(), words(horse)).State()))
		return
	}
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRandomSourceFails$")
	cmd.Env = append(os.Environ(), variable+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil || bytes.Contains(out, []byte("encrypted_data")) || !bytes.Contains(out, []byte("nothing is random")) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestIsRenamed tests under which settings a file counts as one that still has the old name of its key provider.
func TestIsRenamed(t *testing.T) {
	t.Parallel()
	renamed := strings.NewReplacer(`"pbkdf2" "p"`, `"pbkdf2" "q"`, "pbkdf2.p", "pbkdf2.q")
	alias := func(name string) string { return words(horse, fmt.Sprintf("encrypted_metadata_alias = %q", name)) }
	for name, c := range map[string]struct {
		sealed, opened string
		want           bool
	}{
		"the same":         {words(horse), words(horse), false},
		"another name":     {words(horse), renamed.Replace(words(horse)), true},
		"a new alias":      {words(horse), alias("x"), true},
		"the same alias":   {alias("x"), renamed.Replace(alias("x")), false},
		"an alias no more": {alias("x"), words(horse), true},
	} {
		load := func(text string) encryption.Target {
			enc, err := encryption.Load(lighttest.Registry(), encryption.Code(text, "x.hcl"))
			if err != nil {
				t.Fatal(err)
			}
			return enc.State()
		}
		file, err := load(c.sealed).Encrypt(t.Context(), []byte(`{"version":4,"serial":1,"lineage":"l"}`))
		if err != nil {
			t.Fatal(err)
		}
		opened, err := load(c.opened).Decrypt(t.Context(), file)
		if err != nil || opened.IsRenamed() != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

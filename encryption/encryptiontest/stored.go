package encryptiontest

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"
	"unicode"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
)

// Build makes a key provider from its attributes, without an environment.
func Build(tb testing.TB, block encryption.Block[encryption.KeyProvider], attrs map[string]cty.Value) encryption.KeyProvider {
	tb.Helper()
	return mustBuild(tb, block, attrs)
}

// FuzzStored is a fuzz test of what a file stores of a key provider. Provider
// must give a key for the first seed, and for nothing else a key that check does
// not allow; check nil allows only the key of the first seed. An error must be
// short, without control characters, and come without a key; and nothing may
// take long.
//
// Each worker of the fuzzer calls its test anew, so the seeds, and the key that
// belongs to them, must be the same each time.
func FuzzStored(
	f *testing.F, provider encryption.KeyProvider, keys encryption.Keys, check func(t *testing.T, stored, key []byte), seeds ...string,
) {
	f.Helper()
	want, err := provider.Key(f.Context(), keys, json.RawMessage(seeds[0]))
	if err != nil || len(want) == 0 {
		f.Fatalf("the first seed gives no key: %v", err)
	}
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	for _, s := range []string{``, `null`, `{}`, `[]`, `""`, `{"ciphertext":null}`, `{"salt":1}`, `{"":{}}`, `{"a":"b"} {}`, "\x00"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		start := time.Now()
		if r, ok := provider.(encryption.Recognizer); ok {
			r.Recognizes(bytes.Clone(stored))
		}
		key, err := provider.Key(t.Context(), keys, bytes.Clone(stored))
		if took := time.Since(start); took > patience {
			t.Errorf("%q took %v", stored, took)
		}
		switch {
		case err != nil && key != nil:
			t.Errorf("%q gives a key and an error", stored)
		case err != nil:
			checkShown(t, err)
		case check != nil:
			check(t, stored, key)
		case !bytes.Equal(key, want):
			t.Errorf("%q gives the key %x, %x was sealed", stored, key, want)
		}
	})
}

func checkShown(t *testing.T, err error) {
	t.Helper()
	const long = 3000
	text := err.Error()
	if len(text) > long {
		t.Errorf("the error is %d bytes long: %.200s", len(text), text)
	}
	for _, r := range text {
		if unicode.IsControl(r) && r != '\n' || r == unicode.ReplacementChar {
			t.Errorf("the error shows what is not text: %q", text)
			return
		}
	}
}

// StoredIn returns the metadata that the envelope at path holds under name, or
// the only one when name is empty.
func StoredIn(tb testing.TB, path, name string) string {
	tb.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	var envelope struct {
		Meta map[string][]byte `json:"meta"`
	}
	err = json.Unmarshal(file, &envelope)
	if err == nil && name == "" && len(envelope.Meta) != 1 {
		err = errors.New("there is not one entry")
	}
	for key, stored := range envelope.Meta {
		if err == nil && (name == "" || name == key) {
			return string(stored)
		}
	}
	tb.Fatalf("%s: the metadata %q: %v", path, name, err)
	return ""
}

// DamageEnvelope damages an encrypted state, with [Damage], in every way that is
// one truncation or one flipped bit. What target still opens is damaged
// outside of the encrypted data; counts says how many mutants do: for a line end
// that is missing at the end, in the metadata, in the names of other members, and
// in bits of base64 that hold nothing.
func DamageEnvelope(t *testing.T, file []byte, counts [4]int, target encryption.Target) {
	t.Helper()
	part := func(name string, end byte) [2]int {
		start := bytes.Index(file, []byte(name))
		if start < 0 {
			t.Fatalf("the file has no %s", name)
		}
		start += len(name)
		return [2]int{start, start + bytes.IndexByte(file[start:], end)}
	}
	metadata, data := part(`"meta": {`, '}'), part(`"encrypted_data": "`, '"')
	in := func(d Damaged, part [2]int) bool { return !d.Cut && d.At >= part[0] && d.At < part[1] }
	Damage(t, file, func(file []byte) (string, error) {
		opened, err := target.Decrypt(t.Context(), file)
		if err != nil {
			return "", err
		}
		return string(opened.Data), nil
	}, Harmless{
		Why: "the line end at the end is missing", Count: counts[0],
		Is: func(d Damaged) bool { return d.Cut && len(bytes.TrimSpace(file[d.At:])) == 0 },
	}, Harmless{
		Why: "the metadata has another name, and its key provider knows it by its shape; or what differs in it does not " +
			"matter, such as the case of a letter in a name",
		Count: counts[1],
		Is:    func(d Damaged) bool { return in(d, metadata) },
	}, Harmless{
		Why: "a name differs in the case of a letter, or there is no copy of the serial or lineage any more, as early " +
			"versions wrote none",
		Count: counts[2],
		Is:    func(d Damaged) bool { return !d.Cut && !in(d, metadata) && !in(d, data) },
	}, Harmless{
		Why: "these bits of the last digit of base64 hold nothing", Count: counts[3],
		Is: func(d Damaged) bool { return in(d, data) && d.At >= data[1]-4 },
	})
}

package encryptiontest

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
	"unicode"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
)

// FuzzStored is a fuzz test of the metadata that a file stores for a key provider. P must return a
// key for the first seed. For all other input, it must return an error, or a key that check allows.
// If check is nil, only the key of the first seed is allowed. An error must be short, contain no
// control characters, and come without a key. No call may take long.
//
// Each worker of the fuzzer calls the test anew, so the seeds and their key must be the same each
// time.
func FuzzStored(f *testing.F, p driver.KeyProvider, keys driver.Keys, check func(t *testing.T, in, key []byte), seeds ...string) {
	f.Helper()
	want, err := p.Key(f.Context(), keys, json.RawMessage(seeds[0]))
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
		if r, ok := p.(driver.Recognizer); ok {
			r.Recognizes(bytes.Clone(stored))
		}
		key, err := p.Key(t.Context(), keys, bytes.Clone(stored))
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

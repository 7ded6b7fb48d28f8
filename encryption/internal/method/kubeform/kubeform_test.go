package kubeform

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"golang.org/x/crypto/nacl/secretbox"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/encryptiontest"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/vectortest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

func key(s string) map[string]cty.Value { return map[string]cty.Value{"key": cty.StringVal(s)} }

// Kubeform's own code wrote these texts.
func TestSuite(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"kubeform_module", "kubeform_module_wrapped", "kubeform_module_zoo"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := vectortest.Get(t, name)
			file := v.State(t)
			encryptiontest.Method{
				Block: Block(),
				Attrs: key(" " + v.SecretKey + "\n"),
				Other: key(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0x77}, 32))),
				Bad: []map[string]cty.Value{
					{},
					key(""),
					key(vectortest.Get(t, "err_kubeform_short_key").SecretKey),
					key(v.SecretKey[:43]),
					key(strings.Repeat("-", 43) + "="),
					key(v.SecretKey + v.SecretKey),
				},
				File: file, Plain: v.Plain(t),
				Harmless: func(damaged []byte, at int) bool { // the line end at the end is missing, and white space is skipped
					return name == "kubeform_module_wrapped" && len(damaged) == len(file)-1 && file[at] == '\n'
				},
				Secrets: []string{v.SecretKey, v.SecretKey[:43]},
			}.Run(t)
		})
	}
}

func newMethod(tb testing.TB, secretKey string) *method {
	tb.Helper()
	return encryptiontest.Build(tb, Block(), key(secretKey)).(*method)
}

// seal does the two outer layers, around anything.
func (m *method) seal(content []byte) []byte {
	var nonce [nonceSize]byte
	return encode(secretbox.Seal(nonce[:], content, &nonce, &m.key))
}

func compressed(t *testing.T, chunk []byte, times int) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	for range times {
		if _, err := w.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// The error names the layer, and only a wrong key lets a fallback try.
func TestLayers(t *testing.T) {
	t.Parallel()
	v := vectortest.Get(t, "kubeform_module")
	method := newMethod(t, v.SecretKey)
	state := v.Plain(t)
	packed := compressed(t, state, 1)
	changed := bytes.Clone(packed)
	changed[len(changed)-5] ^= 1 // of the checksum
	says := testkit.OpenGolden(t, "../../../testdata/mistakes.txt", "method kubeform", v.SecretKey, "vpc-")
	for name, c := range map[string]struct {
		file  []byte
		fails bool
		noKey bool
	}{
		"all is well":         {method.seal(packed), false, false},
		"empty":               {nil, true, false},
		"too short":           {encode(make([]byte, 39)), true, false},
		"just long enough":    {encode(make([]byte, 40)), true, true},
		"the real truncated":  {vectortest.Get(t, "err_kubeform_truncated").State(t), true, false},
		"a foreign character": {append(v.State(t), '-'), true, false},
		"hidden in the text":  {append([]byte("\x00"), v.State(t)...), true, false},
		"another key":         {newMethod(t, vectortest.Get(t, "err_kubeform_wrong_key").SecretKey).seal(packed), true, true},
		"no gzip":             {method.seal(state), true, false},
		"half of it":          {method.seal(packed[:len(packed)/2]), true, false},
		"wrong checksum":      {method.seal(changed), true, false},
		"more after the end":  {method.seal(append(packed[:len(packed):len(packed)], "more"...)), true, false},
		"nothing inside":      {method.seal(nil), true, false},
		"a gzip bomb":         {method.seal(compressed(t, make([]byte, 1<<20), 100)), true, false},
		"bombs in bombs":      {method.seal(bytes.Repeat(compressed(t, make([]byte, 1<<20), 10), 10)), true, false},
	} {
		plain, err := method.Decrypt(t.Context(), nil, c.file)
		switch {
		case c.fails:
			if says.Error(t, name, err); plain != nil || errors.Is(err, driver.ErrNoKey) != c.noKey {
				t.Errorf("%s: got %.100q, %v", name, plain, err)
			}
		case err != nil || !bytes.Equal(plain, state):
			t.Errorf("%s: got %q, %v", name, plain, err)
		}
	}
	long := make([]byte, 8<<20) // an honest state may unpack to far more than a hundred times its size
	if plain, err := method.Decrypt(t.Context(), nil, method.seal(compressed(t, long, 1))); err != nil || !bytes.Equal(plain, long) {
		t.Errorf("of %d bytes, got %d, %v", len(long), len(plain), err)
	}
}

func TestRecognizes(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]bool{
		"fPNKd": true, " f\r\nP\tN\n": true, "{a}": true, // the alphabet has braces and quotes
		"": false, " \n": false, `{"version":4}`: false, `"text"`: false, "12": false, "f-": false, "f\x00": false, "é": false,
		"age-encryption.org/v1\n": false, "-----BEGIN AGE ENCRYPTED FILE-----\n": false,
	} {
		if recognizes([]byte(file)) != want {
			t.Errorf("%q: want %t", file, want)
		}
	}
}

func FuzzDecrypt(f *testing.F) {
	v := vectortest.Get(f, "kubeform_module")
	method := newMethod(f, v.SecretKey)
	plain := v.Plain(f)
	f.Add(v.State(f))
	f.Add(method.seal(nil))
	f.Add(method.seal([]byte("\x1f\x8b")))
	f.Add(encode(make([]byte, 40)))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, file []byte) {
		if opened, err := method.Decrypt(t.Context(), nil, bytes.Clone(file)); err == nil && !bytes.Equal(opened, plain) {
			t.Errorf("%q opened to %q", file, opened)
		}
	})
}

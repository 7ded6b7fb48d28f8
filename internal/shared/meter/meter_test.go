package meter

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

// A charge that is too large takes all that is left, and pays nothing in.
func TestCharge(t *testing.T) {
	for _, units := range []int64{Free + 6, 1 << 40, math.MaxInt64} {
		m := New(10)
		if err := m.Charge(Free+5, "its values"); err != nil {
			t.Fatal(err)
		}
		if err := m.Charge(units, "its values"); !errors.Is(err, ErrCost) || m.Left() != 0 {
			t.Errorf("%d units: got %v, and %d are left", units, err, m.Left())
		}
	}
}

// A meter is handed down, and nobody need ask for one.
func TestFor(t *testing.T) {
	m := New(1)
	if For(Into(t.Context(), m), 2) != m || For(t.Context(), 2).Left() != New(2).Left() {
		t.Error("got another meter")
	}
}

// What sops and Kubernetes write is no reason to refuse a file of any size; a list
// of nothing is.
func TestYAML(t *testing.T) {
	const megabyte = 1 << 20
	fill := func(part string) []byte { return []byte(strings.Repeat(part, 8*megabyte/len(part))) }
	for name, honest := range map[string]string{
		"sops": "    password: ENC[AES256_GCM,data:" + strings.Repeat("a", 20) + "==,iv:" + strings.Repeat("b", 43) +
			"=,tag:" + strings.Repeat("c", 22) + "==,type:str]\n",
		"Kubernetes": "    privateNetworkIdentifier: vpc-0123456789\n",
		"a template": "    script: echo %TAG of the image that was built last, in the registry of the project\n",
	} {
		text := fill(honest)
		if err := New(len(text)).YAML(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, part := range []string{"a,", "a: b,", "[", "? a,", "- ", "a,#\n", "%TAG !a! b\n--- !a!b\n"} {
		if text := fill(part); New(len(text)).YAML(text) == nil {
			t.Errorf("%q is read", part)
		}
	}
}

func TestUnpack(t *testing.T) {
	packed := func(plain []byte) []byte {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, _ = w.Write(plain)
		_ = w.Close()
		return out.Bytes()
	}
	for size, want := range map[int]error{1 << 20: nil, 8 << 20: ErrExpands, 64 << 20: ErrExpands} {
		r, err := Unpack(bytes.NewReader(packed(make([]byte, size))), gzip.NewReader)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, r)
		if !errors.Is(err, want) || want == nil && int(n) != size || n > 10<<20 {
			t.Errorf("%d bytes: got %d, %v", size, n, err)
		}
	}
}

package meter

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
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

// TestUnpack has honest texts that compress well: the same one in each of many resources, which differ
// in little else. What is refused takes no memory.
func TestUnpack(t *testing.T) {
	packed := func(plain []byte) []byte {
		var out bytes.Buffer
		w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
		_, _ = w.Write(plain)
		_ = w.Close()
		return out.Bytes()
	}
	alike := func(resources, length int) []byte {
		script := make([]byte, length)
		random := rand.New(rand.NewPCG(1, 2))
		for i := range script {
			script[i] = byte(' ' + random.IntN(90))
		}
		var state []byte
		for i := range resources {
			state = fmt.Appendf(state, `{"index_key":%06d,"schema_version":0,"attributes":{"content":%q}},`, i, script)
		}
		return state
	}
	for name, c := range map[string]struct {
		plain []byte
		limit int64
		want  error
	}{
		"nothing":                       {limit: 1},
		"300 scripts of 28 kB":          {plain: alike(300, 28_000), limit: math.MaxInt64},
		"1,500 scripts of 9 kB":         {plain: alike(1500, 9000), limit: math.MaxInt64},
		"8 MB of nothing":               {plain: make([]byte, 8<<20), limit: 8 << 20},
		"8 MB, and one less is allowed": {plain: make([]byte, 8<<20), limit: 8<<20 - 1, want: tooLargeError(8<<20 - 1)},
		"64 MB of nothing":              {plain: make([]byte, 64<<20), limit: math.MaxInt64, want: ErrExpands},
	} {
		in := packed(c.plain)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := Unpack(in, c.limit, gzip.NewReader)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, c.want) || c.want == nil && !bytes.Equal(got, c.plain) {
			t.Errorf("%s, %d : %d: got %d bytes, %v", name, len(c.plain), len(in), len(got), err)
		}
		const little = 256 << 10
		if most := uint64(len(got)) + little; after.TotalAlloc-before.TotalAlloc > most {
			t.Errorf("%s: %d bytes were allocated", name, after.TotalAlloc-before.TotalAlloc)
		}
	}
	if _, err := Unpack(packed([]byte("cut off"))[:12], 100, gzip.NewReader); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut off: %v", err)
	}
}

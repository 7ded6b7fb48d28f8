package meter

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"errors"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

func TestRead(t *testing.T) {
	broken := errors.New("broken pipe")
	tests := map[string]struct {
		r           io.Reader
		size, limit int64
		want        string
		fails       bool
	}{
		"known":                {strings.NewReader("state"), 5, 5, "state", false},
		"unknown":              {strings.NewReader("state"), -1, 5, "state", false},
		"empty, known":         {strings.NewReader(""), 0, 5, "", false},
		"empty, unknown":       {strings.NewReader(""), -1, 0, "", false},
		"byte by byte":         {iotest.OneByteReader(strings.NewReader("state")), 5, 9, "state", false},
		"end with the data":    {iotest.DataErrReader(strings.NewReader("state")), -1, 9, "state", false},
		"size above max":       {iotest.ErrReader(broken), 6, 5, "", true},
		"unknown above max":    {strings.NewReader("states"), -1, 5, "", true},
		"no limit":             {strings.NewReader("state"), -1, math.MaxInt64, "state", false},
		"short":                {strings.NewReader("sta"), 5, 9, "", true},
		"nothing came":         {strings.NewReader(""), 5, 9, "", true},
		"long":                 {strings.NewReader("states"), 5, 9, "", true},
		"broken, known":        {iotest.ErrReader(broken), 5, 9, "", true},
		"broken, unknown":      {iotest.ErrReader(broken), -1, 9, "", true},
		"cut off, unknown":     {io.MultiReader(strings.NewReader("state"), iotest.ErrReader(io.ErrUnexpectedEOF)), -1, 9, "", true},
		"broken after the end": {io.MultiReader(strings.NewReader("state"), iotest.ErrReader(broken)), 5, 9, "", true},
	}
	says := testkit.OpenGolden(t, "../testdata/mistakes.txt", "reads")
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Read(tt.r, tt.size, tt.limit)
			if tt.fails {
				says.Error(t, name, err)
				return
			}
			if err != nil || string(got) != tt.want {
				t.Fatalf("got %q, %v", got, err)
			}
		})
	}
}

func TestReadLarge(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789abcdef"), 100<<10)
	for _, size := range []int64{-1, int64(len(want))} {
		got, err := Read(bytes.NewReader(want), size, 1<<30)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("size %d: got %d bytes, %v", size, len(got), err)
		}
	}
}

// TestPackedLimit: what gzip makes of what it cannot pack fits, and little more.
func TestPackedLimit(t *testing.T) {
	t.Parallel()
	for _, limit := range []int64{0, 1, 1000, 1 << 20} {
		file := make([]byte, limit)
		_, _ = rand.Read(file)
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write(file)
		_ = z.Close()
		if got, least := PackedLimit(limit), int64(packed.Len()); got < least || got > least+limit/500+2000 {
			t.Errorf("%d bytes, packed %d: got %d", limit, least, got)
		}
	}
	if got := PackedLimit(math.MaxInt64); got < 1<<40 {
		t.Errorf("no limit: got %d", got)
	}
}

// A known size costs the file once.
func TestReadAllocatesOnce(t *testing.T) {
	data := make([]byte, 16<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := Read(bytes.NewReader(data), int64(len(data)), 1<<30); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > uint64(len(data))*11/10 {
		t.Errorf("allocated %d bytes for a file of %d", got, len(data))
	}
}

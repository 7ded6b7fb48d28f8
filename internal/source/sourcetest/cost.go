package sourcetest

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"runtime"
	"strings"
	"testing"
)

// Packed is an answer of begin, then part as often as fits into size bytes, then
// end. It is sent with gzip, whether that was asked for or not.
func Packed(t *testing.T, begin, part, end string, size int) http.HandlerFunc {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for _, text := range []string{begin, strings.Repeat(part, size/len(part)), end} {
		if _, err := z.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(b.Bytes())
	}
}

// Allocates fails the test if f allocates more than most bytes. Nothing else may
// run meanwhile.
func Allocates(t *testing.T, most uint64, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > most {
		t.Errorf("%d MiB were allocated, want at most %d MiB", used>>20, most>>20)
	}
}

package sourcetest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/faults"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// Packed returns a handler whose response consists of begin, then part as often as it fits into size bytes,
// then end. The response is always compressed with gzip, even if the client did not ask for it.
func Packed(begin, part, end string, size int) http.HandlerFunc {
	packed := nettest.Gzip([]byte(begin + strings.Repeat(part, size/len(part)) + end))
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed)
	}
}

// Allocates fails the test if f allocates more than most bytes. Nothing else may run at the same time.
func Allocates(t *testing.T, most uint64, f func()) {
	t.Helper()
	before := faults.Allocations()
	f()
	if used := faults.Allocations() - before; used > most {
		t.Errorf("%d MiB were allocated, want at most %d MiB", used>>20, most>>20)
	}
}

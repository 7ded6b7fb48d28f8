package module

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestLockWithoutWaiting checks that a request for a held lock whose context has ended leaves nothing that would take
// the lock later, when the holder ends.
func TestLockWithoutWaiting(t *testing.T) {
	m := &Module{Dir: t.TempDir()}
	end, err := m.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	before := opened(t, m.Dir)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if other, err := m.Lock(ended); !errors.Is(err, context.Canceled) {
		other()
		t.Fatalf("got %v, want %v", err, context.Canceled)
	}
	if after := opened(t, m.Dir); after != before {
		t.Errorf("%d files are open, before there were %d", after, before)
	}
}

// opened returns the number of files below dir that this process has open.
func opened(t *testing.T, dir string) (n int) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if path, err := os.Readlink(link); err == nil { // the descriptor that lists the folder is closed by now
			if below, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(below) {
				n++
			}
		}
	}
	return n
}

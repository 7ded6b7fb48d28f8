// Package probe helps tests check that damaged files are rejected and that secrets are not shown. It
// truncates a file at every length, flips every bit in turn, and lists the forms in which a secret may appear.
package probe

import (
	"bytes"
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// Case describes a damaged file.
type Case struct {
	File []byte // the damaged file
	At   int    // the offset of the changed byte, or of the first missing byte
	Cut  bool   // whether all bytes from At on are missing; otherwise a bit was flipped
	Bit  int    // the index of the flipped bit, 0 for the lowest
}

// String describes the damage, for test messages.
func (d Case) String() string {
	if d.Cut {
		return fmt.Sprintf("cut off at byte %d", d.At)
	}
	return fmt.Sprintf("bit %d of byte %d flipped", d.Bit, d.At)
}

// Harmless describes damage that a reader need not detect.
type Harmless struct {
	Why   string
	Is    func(Case) bool
	Count int // the expected number of damaged files that open for this reason; -1 if it varies between files
}

// Every damages file in every way. For each damaged file, open must return an error, or the same result as
// for the intact file if one of the harmless cases applies. The first case that applies is counted. Every
// calls open from several goroutines, and open may overwrite its argument.
//
// With -short, only one byte in 16 is damaged, and Count is not checked.
func Every(t *testing.T, file []byte, open func(file []byte) (result string, err error), harmless ...Harmless) {
	t.Helper()
	want, err := open(bytes.Clone(file))
	if err != nil {
		t.Fatalf("undamaged, it does not open: %v", err)
	}
	var mutex sync.Mutex
	accepted := make([]int, len(harmless))
	check := func(d Case) {
		got, err := open(bytes.Clone(d.File))
		if err != nil {
			return
		}
		mutex.Lock()
		defer mutex.Unlock()
		if got != want {
			t.Errorf("%v: it opened to something else: %.300q", d, got)
			return
		}
		for i, h := range harmless {
			if h.Is(d) {
				accepted[i]++
				return
			}
		}
		t.Errorf("%v: it opened", d)
	}

	places := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for at := range places {
				check(Case{File: file[:at:at], At: at, Cut: true})
				for bit := range 8 {
					flipped := bytes.Clone(file)
					flipped[at] ^= 1 << bit
					check(Case{File: flipped, At: at, Bit: bit})
				}
			}
		})
	}
	step := 1
	if testing.Short() {
		step = 16
	}
	for at := 0; at < len(file); at += step {
		places <- at
	}
	close(places)
	workers.Wait()
	for i, h := range harmless {
		t.Logf("%d damaged files open: %s", accepted[i], h.Why)
		if !testing.Short() && h.Count >= 0 && accepted[i] != h.Count {
			t.Errorf("%d damaged files open, %d are expected: %s", accepted[i], h.Count, h.Why)
		}
	}
}

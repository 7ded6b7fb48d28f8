// Package probe is for tests: what they do to a file to see it refused, in every way that
// is one truncation or one flipped bit, and the spellings in which they look for a secret.
package probe

import (
	"bytes"
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// Case says what was done to a file.
type Case struct {
	File []byte // the damaged file
	At   int    // the byte that was changed, or the first that is missing
	Cut  bool   // everything from At on is missing; else a bit was flipped
	Bit  int    // which one, from 0 for the lowest
}

// String says in a few words what was done, for messages of tests.
func (d Case) String() string {
	if d.Cut {
		return fmt.Sprintf("cut off at byte %d", d.At)
	}
	return fmt.Sprintf("bit %d of byte %d flipped", d.Bit, d.At)
}

// Harmless is damage that a reader need not notice, with the reason.
type Harmless struct {
	Why   string
	Is    func(Case) bool
	Count int // how many damaged files open for this reason; -1 where it differs from file to file
}

// Every damages file in every way. Open, which is called from several goroutines and may
// overwrite what it gets, must give an error, or the same result as for the whole file;
// and the latter only for one of the reasons, the first that applies.
//
// With -short, only one byte in 16 is damaged, and Count is not compared.
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

package amplification

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// Cost is the cost of reading a file or a response.
type Cost struct {
	size     int
	bytes    int     // allocated, even if freed again
	cpu      float64 // CPU seconds of this process
	programs int
	err      string
}

// measure returns the cost of reading size bytes. Nothing else may run at the same time.
func measure(size int, read func() string) Cost {
	var before, after runtime.MemStats
	if runtime.ReadMemStats(&before); before.HeapAlloc > most/4 {
		runtime.GC()
	}
	began := cpuTime()
	c := Cost{size: size, err: read()}
	c.cpu = cpuTime() - began
	runtime.ReadMemStats(&after)
	c.bytes = int(after.TotalAlloc - before.TotalAlloc) //nolint:gosec // far below 2^63
	return c
}

func (c Cost) String() string {
	return fmt.Sprintf("a file of %d bytes allocates %d kB, takes %.2f s and starts %d programs: %.200s",
		c.size, c.bytes>>10, c.cpu, c.programs, c.err)
}

// bounds limits the cost of reading, depending on the input size.
type bounds struct {
	times    int // bytes that may be allocated per input byte
	constant int // bytes that may be allocated in addition
	programs int // number of programs that may be started

	nests bool // see nestsApart

	longest func(size int) float64 // the time limit in seconds; nil checks only the growth
	enough  int                    // the file size, in bytes, from which a result is conclusive
}

const (
	little     = 1 << 20 // bytes that any read may allocate
	measurable = 0.05    // in seconds; shorter times are too imprecise for a ratio
)

// These texts describe a cost that exceeds its bounds.
const (
	tooMuch  = "allocates more than it may"
	growsTo  = "allocates more than five times what a quarter of the file does"
	tooLong  = "takes longer than it may, or more than eight times as long as a quarter of the file"
	programs = "starts too many programs"
)

// wrong describes how a cost exceeds its bounds. It returns an empty string if the cost is acceptable. The cost before
// is for a file of a quarter of the size.
func (b bounds) wrong(c, before Cost) string {
	most := b.times*c.size + b.constant
	larger := before.size >= 32<<10
	switch {
	case c.programs > b.programs:
		return programs
	case c.bytes > most:
		return tooMuch
	case larger && c.bytes > max(5*before.bytes, b.times*c.size+little):
		return growsTo
	case c.cpu < measurable:
		return ""
	case b.longest != nil && c.cpu > b.longest(c.size), larger && c.cpu > 8*max(before.cpu, measurable/2):
		return tooLong
	}
	return ""
}

// doubtful reports whether a larger file of this kind could still exceed the bounds. If the cost is low and grows
// slowly, the cost of a larger file is also within the bounds.
func (b bounds) doubtful(c, before Cost) bool {
	return c.bytes > b.times*c.size || c.cpu > 6*before.cpu && c.cpu > measurable/4
}

// grow reads larger and larger files as long as the results leave doubts. It starts with a small file, so that a
// mistake shows up quickly.
func (b bounds) grow(t *testing.T, g Grammar, set []Production, read func(file string) Cost) {
	t.Helper()
	var before Cost
	for _, size := range []int{4 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20} {
		file := g.grown(size, set...)
		c := read(file)
		for range 4 { // a loaded machine takes longer, but never less time
			if b.wrong(c, before) == tooLong {
				c.cpu = min(c.cpu, read(file).cpu)
			}
		}
		if wrong := b.wrong(c, before); wrong != "" {
			t.Errorf("%s, %s: it %s; %s", g.Name, named(set), wrong, c)
			return
		}
		if size >= b.enough && !b.doubtful(c, before) || len(file) < size/2 {
			return
		}
		before = c
	}
}

// growAll makes files grow in each production of each grammar, and in pairs of productions. It tries a tenth of the
// pairs, or all of them in "make soak".
func (b bounds) growAll(t *testing.T, grammars []Grammar, read func(file string) Cost) {
	t.Helper()
	if b.nests {
		nest(t, grammars, read)
		return
	}
	for i, g := range grammars {
		sets := g.sets()
		every := len(sets) / testkit.Rounds(len(sets))
		if testing.Short() {
			every = 40
		}
		for j, set := range sets {
			if len(set) == 1 && !testing.Short() || (i+j)%every == 0 {
				b.grow(t, g, set, read)
			}
		}
	}
}

// Grow makes files of the grammars grow. Reading a file may allocate the given number of bytes per file byte, plus 1
// MiB. The cost of storing the file is not measured.
func Grow(t *testing.T, times int, grammars []Grammar, store func(t *testing.T, file string) (read func() error)) {
	t.Helper()
	alone(t)
	bounds{times: times, constant: little, enough: 64 << 10, nests: nestsApart(t)}.growAll(t, grammars, func(file string) Cost {
		read := store(t, file)
		return measure(len(file), func() string { return text(read()) })
	})
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// most is the number of bytes that the process may use before garbage is collected during a read.
const most = 1 << 30

// alone prepares the process for measuring. Garbage is collected between reads, and during a read only above the memory
// limit: the times the collector would choose have nothing to do with the file. With the race detector, which adds its
// own costs, the test is skipped.
func alone(tb testing.TB) {
	tb.Helper()
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		tb.Skip("the race detector has costs of its own")
	}
	percent, limit := debug.SetGCPercent(-1), debug.SetMemoryLimit(most)
	tb.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
}

package clitest

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Terminal returns the two ends of a pseudo-terminal that is closed at the end of the test. A program uses the inner
// end as its terminal. The outer end plays the user: it reads the program's output, and writes the input. If the system
// has no terminals, the test is skipped.
func Terminal(tb testing.TB) (outer, inner *os.File) {
	tb.Helper()
	outer, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		tb.Skip(err)
	}
	tb.Cleanup(func() { _ = outer.Close() })
	number, err := unix.IoctlGetInt(int(outer.Fd()), unix.TIOCGPTN)
	err = errors.Join(err, unix.IoctlSetPointerInt(int(outer.Fd()), unix.TIOCSPTLCK, 0))
	if err == nil {
		inner, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		tb.Skip(err)
	}
	tb.Cleanup(func() { _ = inner.Close() })
	return outer, inner
}

package clitest

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Terminal returns the two ends of a terminal until the test ends: a program writes
// to the inner one what a person sees at the outer one, and reads what is typed
// there. Where there are no terminals, the test is skipped.
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

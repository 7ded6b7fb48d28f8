//go:build unix

package wrap

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// waitForLock locks a file until it is closed.
func waitForLock(f *os.File) (err error) {
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	return err
}

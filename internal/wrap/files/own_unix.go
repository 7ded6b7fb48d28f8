//go:build unix

package files

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// waitForLock locks a file until it is closed.
func waitForLock(f *os.File) (err error) {
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	return err
}

// alive is the name of the file that a process keeps locked in a folder as long as it lives.
const alive = "alive"

// Mark marks a folder as in use by this process, until the returned file is closed. It returns nil if
// files cannot be locked there.
func Mark(dir string) *os.File {
	path := filepath.Join(dir, alive)
	f, err := os.OpenFile(path+"~", os.O_RDONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil && unix.Flock(int(f.Fd()), unix.LOCK_EX) == nil {
		_ = os.Rename(path+"~", path) // nobody sees it without the lock
	}
	return f
}

// IsAbandoned reports whether a folder was marked by a process that has ended.
func IsAbandoned(dir string) bool {
	f, err := os.OpenFile(filepath.Join(dir, alive), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

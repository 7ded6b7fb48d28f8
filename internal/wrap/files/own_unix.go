//go:build unix

package files

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// waitForLock locks the file until it is closed.
func waitForLock(f *os.File) (err error) {
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	return err
}

// alive is the name of the file that a process keeps locked in a folder while the process is alive.
const alive = "alive"

// Mark marks a folder as in use by this process until the returned file is closed. It returns nil if it cannot create
// the file.
func Mark(dir string) *os.File {
	path := filepath.Join(dir, alive)
	f, err := os.OpenFile(path+"~", os.O_RDONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil && unix.Flock(int(f.Fd()), unix.LOCK_EX) == nil {
		_ = os.Rename(path+"~", path) // the final name appears only after the file is locked
	}
	return f
}

// IsAbandoned reports whether the folder was marked by a process that has since exited.
func IsAbandoned(dir string) bool {
	f, err := os.OpenFile(filepath.Join(dir, alive), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

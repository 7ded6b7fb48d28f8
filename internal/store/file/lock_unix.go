//go:build unix

package file

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// duplicate returns another descriptor of what was opened, nil if there can be none.
func duplicate(f *os.File) *os.File {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(fd), f.Name())
}

// lockFile locks the whole file. The CLIs lock it for their process, and each kind of lock
// excludes the other.
func lockFile(f *os.File) error {
	err := unix.FcntlFlock(f.Fd(), setLock, &unix.Flock_t{Type: unix.F_WRLCK})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return errHeld
	}
	return err
}

func unlockFile(f handle) error {
	return unix.FcntlFlock(f.Fd(), setLock, &unix.Flock_t{Type: unix.F_UNLCK})
}

// holder reports whether somebody has the lock, and which process, 0 if that is not known.
func holder(f *os.File) (process int, held bool, err error) {
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	err = unix.FcntlFlock(f.Fd(), getLock, &lock)
	return max(0, int(lock.Pid)), lock.Type != unix.F_UNLCK, err
}

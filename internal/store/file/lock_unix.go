//go:build unix

package file

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// duplicate returns another descriptor of an open file, or nil if it fails.
func duplicate(f *os.File) *os.File {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(fd), f.Name())
}

// lockFile locks the whole file for writing. Terraform and OpenTofu use process locks, and both kinds of locks exclude
// each other.
func lockFile(f *os.File) error { return setLock(f, unix.F_WRLCK) }

// shareLock makes other, the same file opened for reading, hold the lock of f too. Both can only share a read lock. A
// read lock is enough to keep out everyone who asks for the lock, because they all ask for a write lock. Nobody can
// take the lock in between, because f holds one of the two locks at all times.
func shareLock(f, other *os.File) error {
	if err := setLock(f, unix.F_RDLCK); err != nil {
		return err
	}
	return setLock(other, unix.F_RDLCK)
}

func unlockFile(f handle) error { return setLock(f, unix.F_UNLCK) }

func setLock(f handle, kind int16) error {
	err := unix.FcntlFlock(f.Fd(), setsLock, &unix.Flock_t{Type: kind})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return errHeld
	}
	return err
}

// holder reports whether the file is locked, and by which process. The process is 0 if it is unknown.
func holder(f *os.File) (process int, held bool, err error) {
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	err = unix.FcntlFlock(f.Fd(), getsLock, &lock)
	return max(0, int(lock.Pid)), lock.Type != unix.F_UNLCK, err
}

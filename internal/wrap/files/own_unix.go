//go:build unix

package files

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockFile locks a file until it is closed. If another process has the lock and waits is true, lockFile waits. If
// waits is false, it returns an error for which isHeld is true.
func lockFile(f *os.File, waits bool) (err error) {
	how := unix.LOCK_EX | unix.LOCK_NB
	if waits {
		how = unix.LOCK_EX
	}
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(f.Fd()), how)
	}
	return err
}

func isHeld(err error) bool { return errors.Is(err, unix.EWOULDBLOCK) }

// alive is the name of a file in a folder. The process that uses the folder keeps the file locked.
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

// TakeAbandoned calls do if the folder was marked by a process that has since exited. Only one caller at a time takes a
// folder, so do may remove it.
func TakeAbandoned(dir string, do func()) {
	path := filepath.Join(dir, alive)
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if lockFile(f, false) != nil {
		return
	}
	opened, err := f.Stat()
	if named, gone := os.Lstat(path); err == nil && gone == nil && os.SameFile(opened, named) { // the file has not been replaced
		do()
	}
}

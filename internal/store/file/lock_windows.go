package file

import (
	"errors"
	"math"
	"os"

	"golang.org/x/sys/windows"
)

func openToLend(string) *os.File { return nil } // nobody inherits a lock here

func duplicate(*os.File) *os.File { return nil }

func shareLock(_, _ *os.File) error { return nil }

func unlockFile(handle) error { return nil } // closing it does

// lockFile locks as much of the file as the CLIs do. Nobody else reads or writes it then,
// not even this process by another handle.
func lockFile(f *os.File) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 0,
		math.MaxUint32, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return errHeld
	}
	return err
}

// holder reports whether somebody has the lock. Which process is not known.
func holder(f *os.File) (process int, held bool, err error) {
	if err = lockFile(f); errors.Is(err, errHeld) {
		return 0, true, nil
	}
	return 0, false, err // closing it gives the lock back
}

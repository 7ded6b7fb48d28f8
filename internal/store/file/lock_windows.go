package file

import (
	"errors"
	"math"
	"os"

	"golang.org/x/sys/windows"
)

func openToLend(string) *os.File { return nil } // on Windows, children do not inherit locks

func duplicate(*os.File) *os.File { return nil }

func shareLock(_, _ *os.File) error { return nil }

func unlockFile(handle) error { return nil } // closing the file releases the lock

// lockFile locks the same range of the file as Terraform and OpenTofu do. Then no other process can read or write that
// range, nor can this process through another handle.
func lockFile(f *os.File) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 0,
		math.MaxUint32, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return errHeld
	}
	return err
}

// holder reports whether the file is locked. It cannot tell by which process, so it returns 0.
func holder(f *os.File) (process int, held bool, err error) {
	if err = lockFile(f); errors.Is(err, errHeld) {
		return 0, true, nil
	}
	return 0, false, err // closing the file releases the lock
}

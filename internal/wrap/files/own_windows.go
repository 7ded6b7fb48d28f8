package files

import (
	"errors"
	"math"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// lockFile locks a file until it is closed. If another process has the lock and waits is true, lockFile waits. If
// waits is false, it returns an error for which isHeld is true.
func lockFile(f *os.File, waits bool) error {
	how := uint32(windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY)
	if waits {
		how = windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	return windows.LockFileEx(windows.Handle(f.Fd()), how, 0, math.MaxUint32, math.MaxUint32, new(windows.Overlapped))
}

func isHeld(err error) bool {
	return errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING)
}

// alive is the name of a file in a folder. The process that uses the folder keeps the file open.
const alive = "alive"

// Mark marks a folder as in use by this process until the returned file is closed.
func Mark(dir string) *os.File {
	f, _ := os.OpenFile(filepath.Join(dir, alive), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	return f
}

// TakeAbandoned calls do if the folder was marked by a process that has since exited. An open file cannot be removed,
// so a mark that can be removed is abandoned. Only one caller can remove it, so do may remove the folder.
func TakeAbandoned(dir string, do func()) {
	if os.Remove(filepath.Join(dir, alive)) == nil {
		do()
	}
}

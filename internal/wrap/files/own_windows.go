package files

import (
	"math"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// waitForLock locks a file until it is closed.
func waitForLock(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, math.MaxUint32, math.MaxUint32,
		new(windows.Overlapped))
}

// alive is a file in a folder that is open as long as this process lives.
const alive = "alive"

// Mark marks a folder as in use by this process, until the returned file is closed.
func Mark(dir string) *os.File {
	f, _ := os.OpenFile(filepath.Join(dir, alive), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	return f
}

// IsAbandoned reports whether a folder is of a process that no longer lives: a file that somebody has open is not
// removed.
func IsAbandoned(dir string) bool { return os.Remove(filepath.Join(dir, alive)) == nil }

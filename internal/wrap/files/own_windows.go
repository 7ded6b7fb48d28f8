package files

import (
	"math"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// waitForLock locks the file until it is closed.
func waitForLock(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, math.MaxUint32, math.MaxUint32,
		new(windows.Overlapped))
}

// alive is the name of the file that a process keeps open in a folder while the process is alive.
const alive = "alive"

// Mark marks a folder as in use by this process until the returned file is closed.
func Mark(dir string) *os.File {
	f, _ := os.OpenFile(filepath.Join(dir, alive), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	return f
}

// IsAbandoned reports whether the folder was marked by a process that has since exited. It tries to remove the file,
// which fails while a process has the file open.
func IsAbandoned(dir string) bool { return os.Remove(filepath.Join(dir, alive)) == nil }

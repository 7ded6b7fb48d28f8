package files

import (
	"math"
	"os"

	"golang.org/x/sys/windows"
)

// waitForLock locks a file until it is closed.
func waitForLock(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, math.MaxUint32, math.MaxUint32,
		new(windows.Overlapped))
}

// mark does nothing: of the folders of others, nobody knows here whose they are.
func mark(string) *os.File { return nil }

func isAbandoned(string) bool { return false }

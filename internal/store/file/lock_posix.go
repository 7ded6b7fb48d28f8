//go:build unix && !linux

package file

import (
	"os"

	"golang.org/x/sys/unix"
)

// setsLock and getsLock are the fcntl commands for process locks. A process loses such a lock when it closes any
// descriptor of the file.
const setsLock, getsLock = unix.F_SETLK, unix.F_GETLK

func openToLend(string) *os.File { return nil } // children do not inherit process locks

//go:build unix && !linux

package file

import "golang.org/x/sys/unix"

// The lock is of the process: closing any other descriptor of the file loses it.
const setLock, getLock, inherited = unix.F_SETLK, unix.F_GETLK, false

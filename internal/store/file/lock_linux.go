package file

import "golang.org/x/sys/unix"

// The lock is of what was opened, and so of all that have inherited that.
const setLock, getLock, inherited = unix.F_OFD_SETLK, unix.F_OFD_GETLK, true

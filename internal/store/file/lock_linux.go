package file

import "golang.org/x/sys/unix"

// The lock is of the descriptor.
const setLock, getLock = unix.F_OFD_SETLK, unix.F_OFD_GETLK

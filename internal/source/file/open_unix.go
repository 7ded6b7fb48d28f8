//go:build unix

package file

import (
	"os"
	"syscall"
)

// O_NONBLOCK: a pipe without a writer opens at once.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK

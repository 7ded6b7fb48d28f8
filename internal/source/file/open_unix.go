//go:build unix

package file

import (
	"os"
	"syscall"
)

// openFlags contains O_NONBLOCK, so that a pipe without a writer opens at once.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK

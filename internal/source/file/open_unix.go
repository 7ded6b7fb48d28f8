//go:build unix

package file

import (
	"os"
	"syscall"
)

// openFlags contains O_NONBLOCK, so that opening a pipe without a writer does not block.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK

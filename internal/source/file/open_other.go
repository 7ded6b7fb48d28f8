//go:build !unix

package file

import "os"

const openFlags = os.O_RDONLY

package wrap_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// descriptors are those that this process has inherited, each with the flags that it was opened with, in
// octal digits, and what it is. Only Linux tells.
func descriptors() string {
	var list strings.Builder
	entries, _ := os.ReadDir("/proc/self/fdinfo")
	for _, e := range entries {
		text, _ := os.ReadFile(filepath.Join("/proc/self/fdinfo", e.Name())) // none of those that have been closed
		_, flags, _ := strings.Cut(string(text), "flags:\t")
		flags, _, _ = strings.Cut(flags, "\n")
		const closeOnExec = 0o2000000
		if f, err := strconv.ParseInt(flags, 8, 64); err == nil && f&closeOnExec == 0 {
			target, _ := os.Readlink(filepath.Join("/proc/self/fd", e.Name()))
			fmt.Fprintf(&list, "%s %s %s\n", e.Name(), flags, target)
		}
	}
	return list.String()
}

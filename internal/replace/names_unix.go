//go:build unix

package replace

import (
	"os"
	"syscall"
)

// OtherNames returns a warning if a file has other names (hard links), which keep the old content when the file is
// replaced. It returns an empty string if there are none.
func OtherNames(name string) string {
	info, err := os.Stat(name)
	if err != nil {
		return ""
	}
	if file, ok := info.Sys().(*syscall.Stat_t); ok && file.Nlink > 1 {
		return "the old content remains under another name of the file (a hard link); delete that name, too"
	}
	return ""
}

//go:build unix

package replace

import (
	"os"
	"syscall"
)

// OtherNames returns a text about the other names (hard links) of a file, which keep the old content when it is
// replaced. It returns "" if the file has no other name.
func OtherNames(name string) string {
	info, err := os.Stat(name)
	if err != nil {
		return ""
	}
	if file, ok := info.Sys().(*syscall.Stat_t); ok && file.Nlink > 1 {
		return "it has another name (a hard link), under which it stays as it was; delete that one, too"
	}
	return ""
}

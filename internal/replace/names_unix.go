//go:build unix

package replace

import (
	"os"
	"syscall"
)

// OtherNames says that a file has more names than this one, "" if it has not: what is put in
// its place is not under them.
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

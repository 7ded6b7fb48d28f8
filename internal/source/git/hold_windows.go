package git

import (
	"os"
	"path/filepath"
)

const heldName = "held"

// hold keeps a file of a directory open, which cannot be removed meanwhile. It
// returns nil if there is no such directory.
func hold(dir string) *os.File {
	f, err := os.OpenFile(filepath.Join(dir, heldName), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil
	}
	return f
}

// claim holds a directory that an ended process held.
func claim(dir string) (f *os.File, ok bool) {
	info, err := os.Lstat(dir)
	return nil, err == nil && info.IsDir() && os.Remove(filepath.Join(dir, heldName)) == nil
}

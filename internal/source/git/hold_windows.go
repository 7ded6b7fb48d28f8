package git

import (
	"os"
	"path/filepath"
)

const heldName = "held"

// hold creates a file in a directory and keeps it open, so that nobody can remove it in the meantime. It
// returns nil if the directory does not exist or already contains the file.
func hold(dir string) *os.File {
	f, err := os.OpenFile(filepath.Join(dir, heldName), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil
	}
	return f
}

// claim reports whether a process that has ended held the directory, and removes the file that marked it.
func claim(dir string) (f *os.File, ok bool) {
	info, err := os.Lstat(dir)
	return nil, err == nil && info.IsDir() && os.Remove(filepath.Join(dir, heldName)) == nil
}

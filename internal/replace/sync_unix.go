//go:build unix

package replace

import (
	"errors"
	"io/fs"
	"os"
)

// SyncFolder flushes a folder's entries to disk. It skips a folder that the current user is not allowed to list.
func SyncFolder(dir string) error {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

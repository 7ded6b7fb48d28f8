//go:build unix

package replace

import (
	"errors"
	"io/fs"
	"os"
)

// SyncFolder writes the names in a folder to the disk. It skips a folder that this user may not list.
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

//go:build unix

package replace

import (
	"errors"
	"io/fs"
	"os"
)

// SyncFolder has the names in a folder survive a power failure, unless nobody may list it.
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

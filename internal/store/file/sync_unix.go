//go:build unix

package file

import "os"

// syncFolder has the names in a folder survive a power failure.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

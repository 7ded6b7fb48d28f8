package file

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
)

// TestRights: each right that is missing alone is said to be, and nothing is left behind.
//
// Promise: States in stores
func TestRights(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const nobody = 65534
	root := os.Getuid() == 0
	for name, c := range map[string]struct {
		folder, file os.FileMode
		reads, locks bool
	}{
		"all":                     {folder: 0o700, file: 0o600, reads: true, locks: true},
		"to write the file":       {folder: 0o700, file: 0o400, reads: true},
		"to read the file":        {folder: 0o700, file: 0o200},
		"to write to the folder":  {folder: 0o500, file: 0o600, reads: true},
		"to look into the folder": {folder: 0o600, file: 0o600},
		"to list the folder":      {folder: 0o300, file: 0o600, reads: true, locks: true},
	} {
		dir := filepath.Join(t.TempDir(), "folder")
		must(t, os.Mkdir(dir, 0o700))
		path := filepath.Join(dir, "terraform.tfstate")
		put(t, path, storetest.State(1))
		must(t, os.Chmod(filepath.Dir(dir), 0o755))               //nolint:gosec // others pass
		must(t, os.Chmod(filepath.Dir(filepath.Dir(dir)), 0o755)) //nolint:gosec // likewise
		if root {
			must(t, os.Chown(dir, nobody, nobody))
			must(t, os.Chown(path, nobody, nobody))
		}
		must(t, os.Chmod(path, c.file))
		must(t, os.Chmod(dir, c.folder))
		s := at(t, path)
		if root { // whom no right stops
			must(t, unix.Setfsuid(nobody))
		}
		_, read, errRead := s.Read(t.Context())
		errLock := s.Lock(t.Context(), storetest.Lock("1"))
		var errWrite error
		if errLock == nil {
			_, errWrite = s.Write(t.Context(), storetest.State(2), read)
			must(t, s.Unlock(t.Context(), "1"))
		}
		if root {
			must(t, unix.Setfsuid(0))
		}
		must(t, os.Chmod(dir, 0o700)) //nolint:gosec // it is a folder
		if (errRead == nil) != c.reads || (errLock == nil) != c.locks || errWrite != nil {
			t.Errorf("without the right %s: read %v, lock %v, write %v", name, errRead, errLock, errWrite)
		}
		for _, err := range []error{errRead, errLock} {
			if err != nil && !errors.Is(err, store.ErrDenied) {
				t.Errorf("without the right %s: %v", name, err)
			}
		}
		if _, err := os.Stat(s.info); err == nil {
			t.Errorf("without the right %s, a lock is left", name)
		}
	}
}

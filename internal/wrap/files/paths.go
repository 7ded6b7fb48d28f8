package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
)

// MaxState is how many bytes a state and any other body may have.
const MaxState = 512 << 20

// Join returns path relative to dir, without cleaning it: behind a link, ".." leads elsewhere than the
// text suggests.
func Join(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return dir + string(filepath.Separator) + path
}

// Resolve returns where path leads from dir, or from here: absolute, with links
// followed as the system does.
func Resolve(dir, path string) (string, error) {
	if path == "" {
		return "", errors.New("there is no name")
	}
	here, err := os.Getwd()
	if err == nil {
		path, err = filepath.EvalSymlinks(Join(Join(here, dir), path)) // which leaves ".." to the end of a link
	}
	if failed, ok := errors.AsType[*os.PathError](err); ok {
		err = failed.Err
	}
	return path, err
}

// ReadFile reads a regular file, up to the size of a state.
func ReadFile(path string) ([]byte, error) { return ReadUpTo(MaxState, path) }

// ReadUpTo reads a regular file that has no more bytes than the limit.
func ReadUpTo(limit int64, path string) ([]byte, error) {
	if err := ExpectFile(path); err != nil { // before it is opened, for which a pipe waits
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return meter.Read(f, -1, limit)
}

// ExpectFile refuses a path that leads to no regular file.
func ExpectFile(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file; name one")
	}
	return err
}

// IsLink reports whether path names a link.
func IsLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
)

// MaxState is the maximum size, in bytes, of a state or of any other request or response body.
const MaxState = 512 << 20

// Join joins dir and a relative path without cleaning the result, because ".." after a link does not lead to the
// folder that contains the link. It returns an absolute path unchanged.
func Join(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return dir + string(filepath.Separator) + path
}

// Resolve returns the absolute path with all links resolved. A relative path starts in dir, and a relative dir starts
// in the working directory. Resolve returns an error if the path does not exist.
func Resolve(dir, path string) (string, error) {
	if path == "" {
		return "", errors.New("the name is empty")
	}
	here, err := os.Getwd()
	if err == nil {
		path, err = filepath.EvalSymlinks(Join(Join(here, dir), path)) // resolves ".." after links, as the operating system does
	}
	if failed, ok := errors.AsType[*os.PathError](err); ok {
		err = failed.Err
	}
	return path, err
}

// ReadFile reads a regular file of at most [MaxState] bytes.
func ReadFile(path string) ([]byte, error) { return ReadUpTo(MaxState, path) }

// ReadUpTo reads a regular file of at most limit bytes.
func ReadUpTo(limit int64, path string) ([]byte, error) {
	if err := ExpectFile(path); err != nil { // checked before opening, because opening a pipe waits for a writer
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return meter.Read(f, -1, limit)
}

// ExpectFile returns an error if path is not a regular file. It follows links.
func ExpectFile(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	return err
}

// IsLink reports whether path is a symbolic link.
func IsLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

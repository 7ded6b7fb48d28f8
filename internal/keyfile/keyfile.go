// Package keyfile reads the small files that hold keys and tokens.
package keyfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
)

const limit = 1 << 20 // bytes

// Read returns the content of a file of at most 1 MiB. A leading ~ is the home
// directory. Only regular files are opened, because a pipe would wait for a
// writer.
func Read(name string) ([]byte, error) {
	path, err := config.ExpandHome(name)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%.200q is not a regular file", name)
	}
	f, err := os.Open(path)
	if err != nil {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err
		}
		return nil, fmt.Errorf("%.200q cannot be read: %w", name, err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil || len(content) > limit {
		return nil, fmt.Errorf("%.200q cannot be read, or is larger than what is read, at most 1 MiB", name)
	}
	return content, nil
}

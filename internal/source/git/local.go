package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
)

// folder returns the path of a repository on this machine, or an empty string if the address names a server.
func (r remote) folder() string {
	if r.protocol != "file" {
		return ""
	}
	path := strings.TrimPrefix(r.address, "file://")
	if len(path) > 2 && path[0] == '/' && path[2] == ':' { // a Windows path, such as /C:/
		path = path[1:]
	}
	return filepath.FromSlash(path)
}

// whyNoRepository returns why git does not accept a local path as a repository.
func whyNoRepository(path string) string {
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such folder on this machine; check repository, or give the address of the server"
	case err != nil:
		return "the folder cannot be read: " + keyfile.Reason(err).Error()
	case !info.IsDir():
		return "this is a file, and the folder of a repository is required; the file in it belongs in path"
	}
	for at := filepath.Dir(path); filepath.Dir(at) != at; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			return fmt.Sprintf("this is a folder inside the repository %s; set repository to that, and put the rest before path", shown(at))
		}
	}
	return "this folder is no git repository: it holds no .git, and is not a bare one; check repository (to read files outside of " +
		"repositories, use the source file)"
}

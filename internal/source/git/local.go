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
		return "there is no such folder on this machine; check repository, or set the address of the server"
	case err != nil:
		return "the folder cannot be read: " + keyfile.Reason(err).Error()
	case !info.IsDir():
		return "this is a file, but the folder of a repository is required; set path to the file inside the repository"
	}
	for at := filepath.Dir(path); filepath.Dir(at) != at; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			return fmt.Sprintf("this is a folder inside the repository %s; set repository to that folder, and begin path with the "+
				"rest", shown(at))
		}
	}
	return "this folder is not a git repository: it contains no .git, and is not a bare repository; check repository, or use the source " +
		"file to read files outside of repositories"
}

package keyfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Of a path to nothing, only what exists is shown: the rest may be a secret.
func TestExplain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"keys.hcl", "other.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "dangling")); err != nil {
		t.Skip("there are no links here")
	}
	for name, want := range map[string]string{
		"dangling":            fmt.Sprintf("; check the path: %q has no such file", dir),
		"key.hcl":             fmt.Sprintf(`; check the path: %q has no such file. Did you mean "keys.hcl"?`, dir),
		"c4n4ry":              fmt.Sprintf("; check the path: %q has no such file", dir),
		"c4n4ry/c4n4ry+c4n/x": fmt.Sprintf("; check the path, which exists only as far as %q", dir),
		"flder/c4n4ry/x":      fmt.Sprintf(`; check the path, which exists only as far as %q. Did you mean "folder"?`, dir),
		"folder/c4n4ry":       fmt.Sprintf("; check the path: %q has no such file", filepath.Join(dir, "folder")),
		"folder":              "it is a folder, not a file; give the path of a file in it",
	} {
		path := filepath.Join(dir, name)
		_, err := Read(path)
		reason := errors.Unwrap(err) // without the path, which whoever reads may show
		if reason == nil || !strings.HasSuffix(reason.Error(), want) || strings.Contains(reason.Error(), "c4n4ry") ||
			errors.Is(err, fs.ErrNotExist) != (name != "folder") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	denied := &fs.PathError{Op: "open", Path: "c4n4ry", Err: fs.ErrPermission}
	if got := Explain("c4n4ry", denied).Error(); got != "permission denied; ask its owner for permission" {
		t.Errorf("got %s", got)
	}
}

// What is in the place of the name of a file may be what is in the file.
func TestShown(t *testing.T) {
	t.Parallel()
	there := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, shown := range map[string]bool{
		there: true, "keys/ca.pem": true, "~/x": true, "c4n4ry": false, "apiVersion: v1\n": false, `{"token":"a/b"}`: false,
	} {
		if got := Shown(name); (got != "") != shown {
			t.Errorf("%q: got %q", name, got)
		}
	}
}

// Editors and PowerShell write text in their own ways.
func TestReadText(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "key.txt")
	for content, want := range map[string]string{
		"\ufeffc4n4ry": "c4n4ry", "c4n4ry": "c4n4ry", "": "", "age-encryption.org/v1\n\xff": "age-encryption.org/v1\n\xff",
		"\xff\xfec\x004\x00": "!UTF-16", "\xfe\xff\x00c\x004": "!UTF-16", "c\x004\x00n\x00": "!UTF-16", "\x00c\x004\x00n\x004": "!UTF-16",
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadText(name)
		if reason, fails := strings.CutPrefix(want, "!"); fails != (err != nil) || fails && !strings.Contains(err.Error(), reason) ||
			!fails && string(got) != want {
			t.Errorf("%q: got %q, %v", content, got, err)
		}
		if err != nil && errors.Unwrap(err) == nil { // who must not show the name shows the rest
			t.Errorf("%q: %v wraps nothing", content, err)
		}
	}
}

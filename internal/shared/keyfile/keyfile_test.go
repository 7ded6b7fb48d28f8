package keyfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
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
	says := testkit.OpenGolden(t, "../testdata/mistakes.txt", "key files", "c4n4ry")
	for name, path := range map[string]string{
		"a link to nothing": "dangling", "a near name": "key.hcl", "another name": "c4n4ry", "far away": "c4n4ry/c4n4ry+c4n/x",
		"a near folder": "flder/c4n4ry/x", "in a folder": "folder/c4n4ry", "a folder": "folder",
	} {
		_, err := Read(filepath.Join(dir, path))
		reason := errors.Unwrap(err) // without the path, which whoever reads may show
		if says.Error(t, name, reason); errors.Is(err, fs.ErrNotExist) != (path != "folder") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	denied := &fs.PathError{Op: "open", Path: "c4n4ry", Err: fs.ErrPermission}
	says.Error(t, "denied", Explain("c4n4ry", denied))
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

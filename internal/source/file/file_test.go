package file

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
)

// Promise: Reading changes nothing (the suite of every source)
func TestFile(t *testing.T) {
	sourcetest.Run(t, sourcetest.Harness{
		Kind: Kind(),
		Place: func(t *testing.T, data []byte) sourcetest.Place {
			dir := t.TempDir()
			path := filepath.Join(dir, "terraform.tfstate")
			if data != nil {
				write(t, path, data)
			}
			return sourcetest.Place{Attrs: pathAttr(path), Changed: func() error { return onlyRead(dir, data) }}
		},
		Bad: map[string]func(*testing.T) sourcetest.Place{
			"directory": func(t *testing.T) sourcetest.Place { return sourcetest.Place{Attrs: pathAttr(t.TempDir())} },
			"below a file": func(t *testing.T) sourcetest.Place {
				path := filepath.Join(t.TempDir(), "file")
				write(t, path, nil)
				return sourcetest.Place{Attrs: pathAttr(filepath.Join(path, "terraform.tfstate"))}
			},
		},
	})
}

func onlyRead(dir string, data []byte) error {
	entries, err := os.ReadDir(dir)
	if err != nil || data == nil {
		if len(entries) > 0 {
			return errors.New("a file was made")
		}
		return err
	}
	if len(entries) != 1 {
		return errors.New("there are other files now")
	}
	if got, err := os.ReadFile(filepath.Join(dir, entries[0].Name())); err != nil || string(got) != string(data) {
		return errors.New("the file has changed")
	}
	return nil
}

func TestWorkspaces(t *testing.T) {
	says := sourcetest.OpenMistakes(t, "file, names of workspaces")
	t.Chdir(t.TempDir())
	write(t, "my.tfstate", []byte("default"))
	write(t, "terraform.tfstate.d/prod/terraform.tfstate", []byte("prod"))
	write(t, "elsewhere/prod/terraform.tfstate", []byte("elsewhere"))
	for _, tt := range []struct {
		workspace, dir, want string // want is "" for an error
	}{
		{workspace: "", want: "default"},
		{workspace: "default", want: "default"},
		{workspace: "default", dir: "elsewhere", want: "default"},
		{workspace: "prod", want: "prod"},
		{workspace: "prod", dir: "elsewhere", want: "elsewhere"},
		{workspace: "prod", dir: "./elsewhere/", want: "elsewhere"},
		{workspace: "test"},
		{workspace: "prod", dir: "nowhere"},
		{workspace: ".."},
		{workspace: "."},
		{workspace: "../elsewhere/prod"},
		{workspace: "/etc"},
	} {
		attrs := pathAttr("my.tfstate")
		if tt.dir != "" {
			attrs["workspace_dir"] = cty.StringVal(tt.dir)
		}
		got, err := read(t, attrs, tt.workspace)
		check(t, says, tt.workspace+" in "+tt.dir, got, err, tt.want)
	}
}

// The path is that of the default workspace, and no other's name is added to it.
func TestPathWithAWorkspaceInIt(t *testing.T) {
	says := sourcetest.OpenMistakes(t, "file, workspaces")
	t.Chdir(t.TempDir())
	_, err := read(t, pathAttr("states/prod/my.tfstate"), "prod")
	if _, ok := source.IsMissing(err); !ok {
		t.Errorf("got %v", err)
	}
	says.Error(t, "in the path", err)
}

func TestPaths(t *testing.T) {
	says := sourcetest.OpenMistakes(t, "file, paths")
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Chdir(t.TempDir())
	write(t, filepath.Join(home, "a.tfstate"), []byte("home"))
	write(t, "~b.tfstate", []byte("tilde"))
	write(t, "dir/c.tfstate", []byte("relative"))
	if err := os.Symlink("dir/c.tfstate", "link"); err != nil {
		t.Skip(err) // Windows, without the right to
	}
	if err := os.Symlink("nowhere", "dangling"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("dir", "to-dir"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ path, want string }{
		{path: "~/a.tfstate", want: "home"},
		{path: "./~b.tfstate", want: "tilde"},
		{path: "dir/c.tfstate", want: "relative"},
		{path: "dir/../dir/c.tfstate", want: "relative"},
		{path: "link", want: "relative"},
		{path: "dangling"},
		{path: "nowhere/a/b.tfstate"},
		{path: "dirr/c.tfstate"},
		{path: "dir/d.tfstate"},
		{path: "to-dir"},
		{path: "~"},
		{path: "~b.tfstate"},
		{path: "~root/x"},
		{path: ""},
	} {
		got, err := read(t, pathAttr(tt.path), "default")
		check(t, says, tt.path, got, err, tt.want)
	}
}

func TestNoPermission(t *testing.T) {
	if os.Geteuid() <= 0 {
		t.Skip("root may read everything, and Windows has other permissions")
	}
	path := filepath.Join(t.TempDir(), "terraform.tfstate")
	write(t, path, nil)
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	got, err := read(t, pathAttr(path), "default")
	check(t, sourcetest.OpenMistakes(t, "file, permissions"), "none", got, err, "")
}

func read(t *testing.T, attrs map[string]cty.Value, workspace string) (string, error) {
	t.Helper()
	kind := Kind()
	values, err := unstable.NewEntry("file", kind.Table, attrs).Decode(kind.Table, nil)
	if err != nil {
		return "", err
	}
	s, err := kind.Start(source.Settings{})(source.Request{Values: values, Workspace: workspace, MaxSize: 1 << 20})
	if err != nil {
		return "", err
	}
	snap, err := s.Fetch(t.Context())
	if err != nil {
		return "", err
	}
	return string(snap.Data), nil
}

// check compares what was read, or, for "", the error with the golden.
func check(t *testing.T, says *testkit.Golden, name, got string, err error, want string) {
	t.Helper()
	if want == "" {
		says.Error(t, name, err)
	} else if err != nil || got != want {
		t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
	}
}

func pathAttr(path string) map[string]cty.Value {
	return map[string]cty.Value{"path": cty.StringVal(path)}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

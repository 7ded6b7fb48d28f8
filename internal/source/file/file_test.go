package file

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
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
	t.Chdir(t.TempDir())
	write(t, "my.tfstate", []byte("default"))
	write(t, "terraform.tfstate.d/prod/terraform.tfstate", []byte("prod"))
	write(t, "elsewhere/prod/terraform.tfstate", []byte("elsewhere"))
	for _, tt := range []struct {
		workspace, dir, want, err string
	}{
		{workspace: "", want: "default"},
		{workspace: "default", want: "default"},
		{workspace: "default", dir: "elsewhere", want: "default"},
		{workspace: "prod", want: "prod"},
		{workspace: "prod", dir: "elsewhere", want: "elsewhere"},
		{workspace: "prod", dir: "./elsewhere/", want: "elsewhere"},
		{workspace: "test", err: "does not exist"},
		{workspace: "prod", dir: "nowhere", err: "does not exist"},
		{workspace: "..", err: "cannot be the name of a directory"},
		{workspace: ".", err: "cannot be the name of a directory"},
		{workspace: "../elsewhere/prod", err: "cannot be the name of a directory"},
		{workspace: "/etc", err: "cannot be the name of a directory"},
	} {
		attrs := pathAttr("my.tfstate")
		if tt.dir != "" {
			attrs["workspace_dir"] = cty.StringVal(tt.dir)
		}
		got, err := read(t, attrs, tt.workspace)
		check(t, tt.workspace+" in "+tt.dir, got, err, tt.want, tt.err)
	}
}

// The path is that of the default workspace, and no other's name is added to it.
func TestPathWithAWorkspaceInIt(t *testing.T) {
	t.Chdir(t.TempDir())
	_, err := read(t, pathAttr("states/prod/my.tfstate"), "prod")
	if missing, ok := source.IsMissing(err); !ok || !strings.Contains(missing.Detail, "is that of the default workspace alone") ||
		len(fault.In(err)) > 0 {
		t.Errorf("got %v, %v", err, fault.In(err))
	}
	attrs := pathAttr("my.tfstate")
	attrs["workspace_dir"] = cty.StringVal("states/prod")
	_, err = read(t, attrs, "prod")
	if suspect, ok := fault.Find[fault.Suspect](err); !ok || suspect.Setting != "workspace_dir" {
		t.Errorf("got %v, %v", err, suspect)
	}
}

func TestPaths(t *testing.T) {
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
	for _, tt := range []struct{ path, want, err string }{
		{path: "~/a.tfstate", want: "home"},
		{path: "./~b.tfstate", want: "tilde"},
		{path: "dir/c.tfstate", want: "relative"},
		{path: "dir/../dir/c.tfstate", want: "relative"},
		{path: "link", want: "relative"},
		{path: "dangling", err: "is a symbolic link to a file that does not exist"},
		{path: "nowhere/a/b.tfstate", err: `; check the path: the last folder of it that exists is "`},
		{path: "dirr/c.tfstate", err: `dir" does`},
		{path: "dir/d.tfstate", err: filepath.Join("dir", "c.tfstate") + `" does`},
		{path: "to-dir", err: errDirectory.Error()},
		{path: "~", err: errDirectory.Error()},
		{path: "~b.tfstate", err: "only your own"},
		{path: "~root/x", err: "only your own"},
		{path: "", err: "a path is required"},
	} {
		got, err := read(t, pathAttr(tt.path), "default")
		check(t, tt.path, got, err, tt.want, tt.err)
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
	check(t, path, got, err, "", "permission denied")
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

func check(t *testing.T, name, got string, err error, want, wantErr string) {
	t.Helper()
	switch {
	case wantErr == "" && (err != nil || got != want):
		t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
	case wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr)):
		t.Errorf("%s: got %q, %v, want the error %q", name, got, err, wantErr)
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

package module

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/files"
)

// TestKilledRun: a run removes the data directory of a run that was killed, and no other one.
func TestKilledRun(t *testing.T) {
	t.Parallel()
	m := &Module{Dir: t.TempDir()}
	begin := func() *RunData {
		d, err := m.Begin(Settings{"password": "p"})
		if err == nil {
			err = d.Write(t.Context(), 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	runs, killed := begin(), begin()
	if killed.Alive == nil || runs.Alive == nil {
		t.Skip("files cannot be locked here")
	}
	_ = killed.Alive.Close() // as the end of the process does
	again := begin()
	isThere := func(d *RunData) bool {
		_, err := os.Stat(filepath.Join(m.Dir, d.Path, recordName))
		return err == nil
	}
	if isThere(killed) || !isThere(runs) || !isThere(again) {
		t.Errorf("killed: %t, runs: %t, again: %t", isThere(killed), isThere(runs), isThere(again))
	}
	runs.Remove()
	again.Remove()
	if left, err := os.ReadDir(m.own().File("")); err != nil || len(left) > 0 {
		t.Errorf("this is left: %v, %v", left, err)
	}
}

// TestModesOfARun: nobody else reads the record of a run, nor the settings for init.
//
// Promise: Only encrypted states
func TestModesOfARun(t *testing.T) {
	t.Parallel()
	m := &Module{Dir: t.TempDir()}
	d, err := m.Begin(Settings{"password": "p"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Remove()
	record := filepath.Join(m.Dir, d.Path, recordName)
	if err := d.Write(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	config, err := d.Initialize(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{record, config, d.Data.File(recordName)} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

// TestShared: what init has installed is there for each run, also where no link can be made.
func TestShared(t *testing.T) {
	t.Parallel()
	m := &Module{Dir: t.TempDir()}
	installed := filepath.Join(m.Dir, m.OwnData(), "providers", "registry.example", "x", "program")
	if err := os.MkdirAll(filepath.Dir(installed), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(installed, []byte("a provider"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := m.Begin(Settings{})
	if err == nil {
		err = d.Share(t.Context(), func(string, string, ...string) error { return nil })
	}
	if err != nil {
		t.Fatal(err)
	}
	defer d.Remove()
	second := filepath.Join(t.TempDir(), "second")
	if err := secondNames(filepath.Dir(filepath.Dir(filepath.Dir(installed))), second); err != nil {
		t.Fatal(err)
	}
	for _, providers := range []string{filepath.Join(m.Dir, d.Path, "providers"), second} {
		text, err := fs.ReadFile(os.DirFS(providers), "registry.example/x/program")
		if err != nil || string(text) != "a provider" {
			t.Errorf("%s has %q, %v", providers, text, err)
		}
	}
	if !strings.HasPrefix(d.Path, files.OwnFolder+"/") {
		t.Errorf("the path is %s", d.Path)
	}
}

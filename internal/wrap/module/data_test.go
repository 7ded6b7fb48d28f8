package module

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/files"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
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
	again := begin()         // in a folder of the same name
	if again.Path != killed.Path || runs.Path == killed.Path {
		t.Errorf("the folders are %s, %s and %s", runs.Path, killed.Path, again.Path)
	}
	isThere := func(d *RunData) bool {
		_, err := os.Stat(filepath.Join(m.Dir, d.Path, recordName))
		return err == nil
	}
	if !isThere(runs) || !isThere(again) {
		t.Errorf("runs: %t, again: %t", isThere(runs), isThere(again))
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
	for _, path := range []string{record, filepath.Join(m.Dir, config), d.Data.File(recordName)} {
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
		err = d.Share(t.Context(), func(string, string, ...string) (int, string, error) { return 0, "", nil })
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

// TestManyRuns: many runs begin, end and are killed at once, and none of them loses its folder to another one.
func TestManyRuns(t *testing.T) {
	t.Parallel()
	m := &Module{Dir: t.TempDir()}
	var all sync.WaitGroup
	for of := range 8 {
		all.Go(func() {
			for round := range testkit.Rounds(100) {
				mine := fmt.Sprint(of, " ", round)
				d, err := m.Begin(Settings{"password": mine})
				if err == nil {
					err = d.Write(t.Context(), 0)
				}
				if err != nil {
					t.Error(err)
					return
				}
				runtime.Gosched()
				if err := d.Check(); err != nil {
					t.Errorf("%s: the record of %s: %v", d.Path, mine, err)
				}
				if d.Alive != nil && round%3 == 0 {
					_ = d.Alive.Close() // as the end of the process does
					continue
				}
				d.Remove()
			}
		})
	}
	all.Wait()
}

// TestFoldersOfRuns: errors about the folders of a run say what to do.
func TestFoldersOfRuns(t *testing.T) {
	t.Parallel()
	mistakes := wraptest.OpenMistakes(t, "folders of a run")
	m := &Module{Dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(m.Dir, files.DataName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := m.Begin(Settings{})
	mistakes.Failed(t, "a file in place of the data directory", "", err)

	m = &Module{Dir: t.TempDir()}
	d, err := m.Begin(Settings{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Remove()
	for _, folder := range []string{m.own().File("modules"), d.run.File("modules"), d.run.File("block"), d.run.File(recordName)} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	nothing := func(string, string, ...string) (int, string, error) { return 0, "", nil }
	mistakes.Failed(t, "modules in the folder", "", d.Share(t.Context(), nothing))
	if err := os.Remove(d.run.File("modules")); err != nil {
		t.Fatal(err)
	}
	mistakes.Failed(t, "a block in the folder", "", d.Share(t.Context(), nothing))
	if err := errors.Join(os.Remove(d.run.File("block")), os.Remove(d.run.File("modules"))); err != nil {
		t.Fatal(err)
	}
	mistakes.Failed(t, "a folder in place of the record", "", d.Share(t.Context(), nothing))
}

package file

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/notice"
	filesource "github.com/statecrypt/terraform-provider-statecrypt/internal/source/file"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/careful"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
)

// in is the store of a folder.
func in(t *testing.T, folder string) store.Store {
	t.Helper()
	values, err := unstable.NewEntry("backend.file", filesource.Backend(), nil).Decode(filesource.Backend(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Kind().Open(store.Settings{Values: values, Limit: 512 << 20, Seal: seal, Folder: folder, Module: folder})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// at is the state in a file.
func at(t *testing.T, path string) *state {
	t.Helper()
	s := in(t, filepath.Dir(path))
	one, err := s.State(filepath.Base(path))
	if err != nil {
		t.Fatal(err)
	}
	return one.(*state)
}

func seal(_ context.Context, found []byte) ([]byte, error) {
	return append([]byte("sealed: "), found...), nil
}

func TestStore(t *testing.T) {
	t.Parallel()
	facts := (*files)(nil).Properties()
	storetest.Run(t, storetest.Harness{Properties: facts, Huge: true, Place: func(t *testing.T, name string) storetest.Place {
		path := filepath.Join(t.TempDir(), name)
		return storetest.Place{
			Open: func(t *testing.T) store.State { return at(t, path) },
			Put:  func(t *testing.T, data []byte) { put(t, path, data) },
			Lose: func(t *testing.T) { // as git does
				data, err := os.ReadFile(path)
				if err == nil {
					err = os.Remove(path)
				}
				if err != nil {
					t.Fatal(err)
				}
				put(t, path, data)
			},
		}
	}})
}

func put(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// die leaves what the end of a process leaves. A program that another test starts at this
// moment inherits the file, so closing it would not be enough.
func die(t *testing.T, s *state) {
	t.Helper()
	must(t, s.letGo())
}

// told collects what is noted for the user.
func told(t *testing.T) (context.Context, *strings.Builder) {
	var text strings.Builder
	return notice.With(t.Context(), func(line string) { text.WriteString(line + "\n") }), &text
}

// TestLeaves: a lock leaves the state and nothing else, and a run one backup, of what it
// found.
//
// Promise: States in stores
func TestLeaves(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "terraform.tfstate")
	s := at(t, path)
	put(t, path, storetest.State(1))
	must(t, s.Lock(t.Context(), storetest.Lock("1")))
	_, v, err := s.Read(t.Context())
	must(t, err)
	for serial := 2; serial < 4; serial++ {
		v, err = s.Write(t.Context(), storetest.State(serial), v)
		must(t, err)
	}
	must(t, s.Unlock(t.Context(), "1"))
	entries, err := os.ReadDir(filepath.Dir(path))
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != "terraform.tfstate terraform.tfstate.backup" {
		t.Errorf("these files are left: %s", got)
	}
	if backup, err := os.ReadFile(path + ".backup"); err != nil || string(backup) != "sealed: "+string(storetest.State(1)) {
		t.Errorf("the backup is %.100s, %v", backup, err)
	}
}

// TestForce: what a killed run has left is said, and removed on request; a lock that someone has is
// not.
//
// Promise: States in stores
func TestForce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "terraform.tfstate")
	killed, s := at(t, path), at(t, path)
	must(t, killed.Lock(t.Context(), storetest.Lock("1")))
	err := s.Unlock(t.Context(), "1")
	if _, ok := errors.AsType[*store.AliveError](err); !ok {
		t.Errorf("while someone has it: %v", err)
	}
	die(t, killed)
	if holder, err := s.Holder(t.Context()); holder != nil || err != nil {
		t.Errorf("the holder is %v, %v", holder, err)
	}
	if _, ok := errors.AsType[*store.HeldError](s.Unlock(t.Context(), "2")); !ok {
		t.Error("another lock was given back")
	}
	ctx, text := told(t)
	must(t, s.Lock(ctx, storetest.Lock("3")))
	if !strings.Contains(text.String(), `"1@host"`) {
		t.Errorf("this was said: %s", text)
	}
	must(t, s.Unlock(ctx, "3"))
	if err := s.Unlock(ctx, "1"); !errors.Is(err, store.ErrMissing) {
		t.Errorf("then: %v", err)
	}
}

// TestPlaces: what is no file is not waited for, and a missing folder is said.
func TestPlaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	for name, want := range map[string]bool{"folder": true, "none/terraform.tfstate": false} {
		s := at(t, filepath.Join(dir, name))
		s.path = filepath.Join(dir, name)
		if _, _, err := s.Read(t.Context()); (err != nil) != want {
			t.Errorf("%s: %v", name, err)
		}
		if s.Lock(t.Context(), storetest.Lock("1")) == nil {
			t.Errorf("%s was locked", name)
		}
	}
}

// TestNames: a state has the longest name that the files beside it leave room for, and no longer one.
//
// Promise: States in stores
func TestNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	longest := strings.Repeat("x", 236)
	s := at(t, filepath.Join(dir, longest))
	for serial := range 2 {
		must(t, s.Lock(t.Context(), storetest.Lock("1")))
		_, read, err := s.Read(t.Context())
		must(t, err)
		_, err = s.Write(t.Context(), storetest.State(serial), read)
		must(t, err)
		must(t, s.Unlock(t.Context(), "1"))
	}
	if _, err := in(t, dir).State(longest + "x"); err == nil {
		t.Error("a longer one was opened")
	}
}

// TestLinks: what was not finished by way of a link is found without it, and by another.
//
// Promise: States in stores
func TestLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "states", "prod")
	must(t, os.Mkdir(filepath.Dir(path), 0o700))
	put(t, path, storetest.State(1))
	var links []string
	for _, name := range []string{"one", "two"} {
		links = append(links, filepath.Join(dir, name))
		if err := os.Symlink(path, links[len(links)-1]); err != nil {
			t.Skip(err)
		}
	}
	for serial, next := range []string{path, links[1], links[0]} {
		unfinish(t, links[0], storetest.State(serial+2))
		s := at(t, next)
		must(t, s.Lock(t.Context(), storetest.Lock("2")))
		if got, _, err := s.Read(t.Context()); err != nil || !bytes.Equal(got, storetest.State(serial+2)) {
			t.Errorf("by %s: %.50q, %v", next, got, err)
		}
		must(t, s.Unlock(t.Context(), "2"))
	}
}

// TestLinksBeside: a link in the place of a file beside the state is replaced, or refused, and what it
// leads to stays as it is.
//
// Promise: Links in modules
func TestLinksBeside(t *testing.T) {
	t.Parallel()
	const canary = "someone's own"
	files := map[string]func(*state) string{ // each is written by one of the ways below
		"journal": func(s *state) string { return s.journal },
		"info":    func(s *state) string { return s.info },
		"backup":  func(s *state) string { return s.backup },
		"kept": func(s *state) string {
			return s.path + "." + string(store.Digest(storetest.State(2))[:8]) + ".unwritten"
		},
	}
	for name, file := range files {
		for kind, there := range map[string]bool{"a file": true, "nothing": false} {
			dir, elsewhere := t.TempDir(), t.TempDir()
			path, to := filepath.Join(dir, "terraform.tfstate"), filepath.Join(elsewhere, "x")
			if there {
				put(t, to, []byte(canary))
			}
			put(t, path, storetest.State(1))
			s := at(t, path)
			if name == "kept" {
				must(t, s.writeJournal(t.Context(), storetest.State(3), storetest.State(2)))
			}
			if err := os.Symlink(to, file(s)); err != nil {
				t.Skip(err)
			}
			ctx, _ := told(t)
			err := s.Lock(ctx, storetest.Lock("1"))
			if (err != nil) != (name == "journal") {
				t.Errorf("%s, %s: it is locked: %v", name, kind, err)
			}
			if err == nil {
				_, err = s.Write(ctx, storetest.State(4), version(storetest.State(1)))
				must(t, errors.Join(err, s.Unlock(ctx, "1")))
			}
			entries, err := os.ReadDir(elsewhere)
			must(t, err)
			if got, _ := os.ReadFile(to); len(entries) > 0 != there || there && string(got) != canary {
				t.Errorf("%s, %s: elsewhere is %q with %q", name, kind, entries, got)
			}
			if got, err := os.Lstat(file(s)); err == nil && got.Mode()&os.ModeSymlink != 0 != (name == "journal") {
				t.Errorf("%s, %s: it is %s", name, kind, got.Mode())
			}
		}
	}
}

// TestInfoIsNoLink: what a link leads to in place of the file that says who has a lock is not shown.
func TestInfoIsNoLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, secret := filepath.Join(dir, "terraform.tfstate"), filepath.Join(t.TempDir(), "config.json")
	put(t, path, storetest.State(1))
	put(t, secret, []byte(`{"ID":"canary","Who":"canary","Created":"canary"}`))
	s := at(t, path)
	if err := os.Symlink(secret, s.info); err != nil {
		t.Skip(err)
	}
	ctx, text := told(t)
	err := s.Unlock(ctx, "1")
	must(t, s.Lock(ctx, storetest.Lock("1")))
	must(t, s.Unlock(ctx, "1"))
	held, ok := errors.AsType[*store.HeldError](err)
	if said := text.String(); ok && strings.Contains(held.By.Describe(), "canary") || strings.Contains(said, "canary") {
		t.Errorf("it says %q, and %v", said, err)
	}
}

// unfinish has a process killed that writes a state.
func unfinish(t *testing.T, path string, data []byte) {
	t.Helper()
	s, left := at(t, path), 2
	s.through = func(f *os.File) handle { return disk{f, &left, func() error { return errors.New("killed") }} }
	must(t, s.Lock(t.Context(), storetest.Lock("1")))
	_, read, err := s.Read(t.Context())
	must(t, err)
	if _, err := s.Write(t.Context(), data, read); err == nil {
		t.Fatal("it was written")
	}
	die(t, s)
}

// TestNoJournal: what nobody can finish is said to be that, and not to be finished by the next.
func TestNoJournal(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "terraform.tfstate")
	put(t, path, storetest.State(1))
	unfinish(t, path, storetest.State(2))
	s := at(t, path)
	_, _, before := s.Read(t.Context())
	must(t, os.Remove(s.journal))
	_, _, after := s.Read(t.Context())
	must(t, s.Lock(t.Context(), storetest.Lock("2")))
	_, _, locked := s.Read(t.Context())
	if before == nil || after == nil || locked == nil || before.Error() == after.Error() || after.Error() != locked.Error() {
		t.Errorf("it says %v; without the journal %v; with the lock %v", before, after, locked)
	}
}

// TestStuckInfo: a lock is given back, also if what says who had it cannot be removed.
func TestStuckInfo(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "terraform.tfstate")
	s, other := at(t, path), at(t, path)
	must(t, s.Lock(t.Context(), storetest.Lock("1")))
	must(t, errors.Join(os.Remove(s.info), os.MkdirAll(filepath.Join(s.info, "x"), 0o700)))
	ctx, text := told(t)
	must(t, s.Unlock(ctx, "1"))
	if !strings.Contains(text.String(), "lock.info") {
		t.Errorf("this was said: %s", text)
	}
	must(t, os.RemoveAll(s.info))
	must(t, other.Lock(t.Context(), storetest.Lock("2")))
}

// disk is a file on a disk that is full, or of a process that is killed: after some steps,
// nothing is done any more, and of the last write half.
type disk struct {
	*os.File
	left *int
	end  func() error
}

func (d disk) step(do func() error, half func()) error {
	if *d.left--; *d.left >= 0 {
		return do()
	}
	if *d.left == -1 {
		half()
	}
	return d.end()
}

func (d disk) WriteAt(p []byte, off int64) (int, error) {
	err := d.step(func() error {
		_, err := d.File.WriteAt(p, off)
		return err
	}, func() { _, _ = d.File.WriteAt(p[:len(p)/2], off) })
	return len(p), err
}

func (d disk) Truncate(size int64) error {
	return d.step(func() error { return d.File.Truncate(size) }, func() {})
}

func (d disk) Sync() error { return d.step(d.File.Sync, func() {}) }

// TestFull: on a full disk, the state stays.
//
// Promise: States in stores
func TestFull(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left on device")
	for _, sizes := range [][2]int{{1, 200}, {200, 1}, {5, 5}} {
		for steps := range 7 {
			path := filepath.Join(t.TempDir(), "terraform.tfstate")
			before := storetest.State(sizes[0])
			put(t, path, before)
			s, once := at(t, path), true
			left := steps
			s.through = func(f *os.File) handle {
				return disk{f, &left, func() error {
					if once { // the old state had room
						once, left = false, 100
						return full
					}
					return nil
				}}
			}
			must(t, s.Lock(t.Context(), storetest.Lock("1")))
			if _, err := s.Write(t.Context(), storetest.State(sizes[1]), version(before)); !strings.Contains(err.Error(), full.Error()) {
				t.Errorf("after %d steps: %v", steps, err)
			}
			must(t, s.Unlock(t.Context(), "1"))
			if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, before) {
				t.Errorf("after %d steps: %.50q, %v", steps, got, err)
			}
			if _, err := os.Stat(s.journal); err == nil {
				t.Errorf("after %d steps, there is a journal", steps)
			}
		}
	}
}

// TestUnfinished: a run that is killed at any step leaves the old state, the new one, or what nobody
// reads and the next run finishes.
//
// Promise: States in stores
func TestUnfinished(t *testing.T) {
	t.Parallel()
	killed := errors.New("killed")
	for _, sizes := range [][2]int{{1, 200}, {200, 1}, {5, 5}, {-1, 5}} {
		for steps := range 8 {
			path := filepath.Join(t.TempDir(), "terraform.tfstate")
			var before []byte
			if sizes[0] >= 0 {
				before = storetest.State(sizes[0])
			}
			put(t, path, before)
			s, left := at(t, path), steps
			s.through = func(f *os.File) handle { return disk{f, &left, func() error { return killed }} }
			must(t, s.Lock(t.Context(), storetest.Lock("1")))
			after := storetest.State(sizes[1])
			_, err := s.Write(t.Context(), after, version(before))
			die(t, s)
			there, failed := os.ReadFile(path)
			must(t, failed)
			switch {
			case bytes.Equal(there, before), bytes.Equal(there, after), isUnfinished(there):
			default:
				t.Errorf("after %d steps, the file holds %q", steps, there)
			}
			ctx, _ := told(t)
			next := at(t, path)
			if isUnfinished(there) {
				if data, _, err := next.Read(ctx); err == nil {
					t.Errorf("after %d steps, %.50q was read", steps, data)
				}
			}
			must(t, next.Lock(ctx, storetest.Lock("2")))
			got, _, errRead := next.Read(ctx)
			if errRead != nil || !bytes.Equal(got, after) {
				t.Errorf("after %d steps (%v): %.50q, %v", steps, err, got, errRead)
			}
			must(t, next.Unlock(ctx, "2"))
			if _, err := os.Stat(s.journal); err == nil {
				t.Errorf("after %d steps, there is still a journal", steps)
			}
		}
	}
}

// TestForeign: a state that someone else has written after a run was killed stays, and
// what that run was to write is kept.
//
// Promise: States in stores
func TestForeign(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		there []byte
		stays bool
	}{
		"the old one": {there: storetest.State(1)},
		"another":     {there: storetest.State(7), stays: true},
		"plaintext":   {there: []byte(`{"version":4,"serial":1}`), stays: true},
		"half":        {there: storetest.State(7)[:50]},
		"nothing":     {there: nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "terraform.tfstate")
			s := at(t, path)
			must(t, s.writeJournal(t.Context(), storetest.State(1), storetest.State(2)))
			put(t, path, c.there)
			ctx, text := told(t)
			must(t, s.Lock(ctx, storetest.Lock("1")))
			got, _, err := s.Read(ctx)
			must(t, err)
			want := storetest.State(2)
			if c.stays {
				want = c.there
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got %.100q", got)
			}
			kept, _ := filepath.Glob(path + ".*.unwritten")
			if (len(kept) == 1) != c.stays || c.stays && !strings.Contains(text.String(), filepath.Base(kept[0])) {
				t.Errorf("this is kept: %q\n%s", kept, text)
			}
			if c.stays {
				data, err := os.ReadFile(kept[0])
				if err != nil || !bytes.Equal(data, storetest.State(2)) {
					t.Errorf("kept is %.100q, %v", data, err)
				}
			}
		})
	}
	path := filepath.Join(t.TempDir(), "terraform.tfstate")
	s := at(t, path)
	put(t, s.journal, []byte("{}\nhalf"))
	if s.Lock(t.Context(), storetest.Lock("1")) == nil {
		t.Error("a damaged journal is not noticed")
	}
}

// TestLostWhileWriting: a state that was written to a file without a name is not there, although the
// locked file has it.
func TestLostWhileWriting(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "terraform.tfstate")
	put(t, path, storetest.State(1))
	s := at(t, path)
	s.through = func(f *os.File) handle { return exchanged{f, path} }
	careful := careful.New(s, (*files)(nil).Properties())
	must(t, careful.Lock(t.Context(), storetest.Lock("1")))
	_, read, err := careful.Read(t.Context())
	must(t, err)
	if _, err := careful.Write(t.Context(), storetest.State(2), read); !errors.Is(err, store.ErrLost) {
		t.Errorf("got %v", err)
	}
}

// exchanged is a file whose place another one takes while it is written.
type exchanged struct {
	*os.File
	path string
}

func (e exchanged) Truncate(size int64) error {
	data, err := os.ReadFile(e.path)
	return errors.Join(err, os.Remove(e.path), os.WriteFile(e.path, data, 0o600), e.File.Truncate(size))
}

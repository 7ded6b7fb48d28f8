package file

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
)

// TestLent: a program that has inherited the file keeps the lock if this process is killed, and
// not if the lock is given back.
//
// Promise: States in stores
func TestLent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(s *state) error
		held bool
	}{
		"killed":     {end: func(s *state) error { return s.f.Close() }, held: true},
		"given back": {end: func(s *state) error { return s.Unlock(t.Context(), "1") }},
		"closed":     {end: func(s *state) error { return s.letGo() }},
	} {
		path := filepath.Join(t.TempDir(), "terraform.tfstate")
		s, other := at(t, path), at(t, path)
		cmd := exec.CommandContext(t.Context(), "cat")
		lent := s.Lend()
		cmd.ExtraFiles = []*os.File{lent}
		goOn, err := cmd.StdinPipe()
		must(t, err)
		must(t, cmd.Start())
		must(t, lent.Close())
		must(t, s.Lock(t.Context(), storetest.Lock("1")))
		must(t, c.end(s))
		s.f = nil
		err = other.Lock(t.Context(), storetest.Lock("2"))
		if _, held := errors.AsType[*store.HeldError](err); held != c.held {
			t.Errorf("%s, while the program runs: %v", name, err)
		}
		must(t, goOn.Close())
		must(t, cmd.Wait())
		if err := other.Lock(t.Context(), storetest.Lock("2")); err != nil {
			t.Errorf("%s, after its end: %v", name, err)
		}
	}
}

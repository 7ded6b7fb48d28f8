package file

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
)

// heir is a program that has inherited the file of a state, and ends when it is told to.
func heir(t *testing.T, s *state, program string, args ...string) (end func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	lent := s.Lend()
	cmd.ExtraFiles = []*os.File{lent}
	goOn, err := cmd.StdinPipe()
	must(t, err)
	must(t, cmd.Start())
	must(t, lent.Close())
	return func() {
		must(t, goOn.Close())
		must(t, cmd.Wait())
	}
}

// checkRefused asks for the lock as the CLIs do, for a process and to write, and as wrap does.
func checkRefused(t *testing.T, when, path string, refused bool) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	if !refused {
		waitUntilFree(t, f)
		defer waitUntilFree(t, f)
	}
	for kind, command := range map[string]int{"a process": unix.F_SETLK, "a description": unix.F_OFD_SETLK} {
		err := unix.FcntlFlock(f.Fd(), command, &unix.Flock_t{Type: unix.F_WRLCK})
		if (err != nil) != refused {
			t.Errorf("%s, the lock of %s: %v", when, kind, err)
		}
		_ = unix.FcntlFlock(f.Fd(), command, &unix.Flock_t{Type: unix.F_UNLCK})
	}
	other := at(t, path)
	err = other.Lock(t.Context(), storetest.Lock("2"))
	if _, held := errors.AsType[*store.HeldError](err); held != refused {
		t.Errorf("%s, the lock of another wrap: %v", when, err)
	}
	if holder, err := at(t, path).Holder(t.Context()); err != nil || holder == nil {
		t.Errorf("%s, the holder is %v, %v", when, holder, err) // that other one, if it was not refused
	}
	must(t, other.letGo())
}

// waitUntilFree waits until nobody has a lock of f. A process that another test starts has all descriptors of this one
// until it executes its program, and so keeps their locks for a moment.
func waitUntilFree(t *testing.T, f *os.File) {
	t.Helper()
	for t.Context().Err() == nil {
		lock := unix.Flock_t{Type: unix.F_WRLCK}
		must(t, unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock))
		if lock.Type == unix.F_UNLCK {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

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
		"killed": {end: func(s *state) error { return errors.Join(s.f.Close(), s.lent.Close()) }, held: true},
		"killed, with the lock of a write": {end: func(s *state) error {
			must(t, s.Unlock(t.Context(), "1"))
			return s.locked(t.Context(), func() error { return errors.Join(s.f.Close(), s.lent.Close(), errors.New("killed")) })
		}, held: true},
		"given back": {end: func(s *state) error { return s.Unlock(t.Context(), "1") }},
		"closed":     {end: func(s *state) error { return s.letGo() }},
	} {
		path := filepath.Join(t.TempDir(), "terraform.tfstate")
		s := at(t, path)
		end := heir(t, s, "cat")
		must(t, s.Lock(t.Context(), storetest.Lock("1")))
		checkRefused(t, name+", before", path, true)
		_ = c.end(s)
		checkRefused(t, name+", while the program runs", path, c.held)
		end()
		checkRefused(t, name+", after its end", path, false)
	}
}

// TestLentThroughout: while the state is written, read and locked again, the lock is always there
// when it should be, and the program that has inherited it has it as well.
//
// Promise: States in stores
func TestLentThroughout(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "terraform.tfstate")
	s := at(t, path)
	end := heir(t, s, "cat")
	checkRefused(t, "before", path, false)
	var version store.Version
	for serial := range 3 {
		must(t, s.Lock(t.Context(), storetest.Lock("1")))
		must(t, s.Lock(t.Context(), storetest.Lock("1"))) // an answer was lost
		checkRefused(t, "locked", path, true)
		for range 2 {
			next, err := s.Write(t.Context(), storetest.State(serial), version)
			must(t, err)
			version = next
			checkRefused(t, "written", path, true)
		}
		data, _, err := s.Read(t.Context())
		must(t, err)
		if string(data) != string(storetest.State(serial)) {
			t.Errorf("there is %s", data)
		}
		must(t, s.Unlock(t.Context(), "1"))
		checkRefused(t, "given back", path, false)
	}
	_, err := s.Write(t.Context(), storetest.State(9), version) // with a lock of its own
	must(t, err)
	must(t, s.Lock(t.Context(), storetest.Lock("1")))
	must(t, errors.Join(s.f.Close(), s.lent.Close()))
	checkRefused(t, "killed", path, true)
	end()
	checkRefused(t, "after the end", path, false)
}

// TestLentIsRead: what a program writes to the file that it has inherited fails, whether the state is
// locked or not.
//
// Promise: Runs under wrap
func TestLentIsRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "terraform.tfstate")
	put(t, path, storetest.State(1))
	s := at(t, path)
	lent := s.Lend()
	must(t, s.Lock(t.Context(), storetest.Lock("1")))
	script := exec.CommandContext(t.Context(), "sh", "-c", "echo a note >&3")
	script.ExtraFiles = []*os.File{lent}
	if out, err := script.CombinedOutput(); err == nil {
		t.Errorf("a script that writes to it has success: %s", out)
	}
	if _, err := lent.WriteString("x"); !errors.Is(err, unix.EBADF) {
		t.Errorf("it can be written: %v", err)
	}
	must(t, lent.Close())
	if there, err := os.ReadFile(path); err != nil || string(there) != string(storetest.State(1)) {
		t.Errorf("there is %s, %v", there, err)
	}
}

// TestLentIsReplaced: if another file has taken the name before the state is locked, the lock is on that.
func TestLentIsReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "terraform.tfstate")
	put(t, path, storetest.State(1))
	s := at(t, path)
	end := heir(t, s, "cat")
	put(t, path+".new", storetest.State(2))
	must(t, os.Rename(path+".new", path))
	must(t, s.Lock(t.Context(), storetest.Lock("1")))
	checkRefused(t, "locked", path, true)
	must(t, s.Unlock(t.Context(), "1"))
	checkRefused(t, "given back", path, false)
	end()
}

// TestLentOfOthers: while someone else has the lock, that of this process is refused, and theirs stays.
func TestLentOfOthers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "terraform.tfstate")
	first, second := at(t, path), at(t, path)
	end := heir(t, second, "cat")
	must(t, first.Lock(t.Context(), storetest.Lock("1")))
	err := second.Lock(t.Context(), storetest.Lock("2"))
	if _, held := errors.AsType[*store.HeldError](err); !held {
		t.Errorf("got %v", err)
	}
	checkRefused(t, "asked for twice", path, true)
	must(t, first.letGo())
	must(t, second.Lock(t.Context(), storetest.Lock("2")))
	checkRefused(t, "taken in the end", path, true)
	must(t, errors.Join(second.f.Close(), second.lent.Close()))
	checkRefused(t, "killed", path, true)
	end()
}

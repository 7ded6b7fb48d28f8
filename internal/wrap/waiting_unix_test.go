//go:build unix

package wrap_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/files"
	modules "github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/module"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// TestInitWaits: while another run initializes the module, init says once that it waits, and for which folder. It goes
// on when the other run has ended, and ends at a signal.
//
// Promise: Runs under wrap
func TestInitWaits(t *testing.T) {
	needSignals(t)
	mistakes := wraptest.OpenMistakes(t, "init waits")
	for _, args := range []string{"init", "init -backend=false", "init -migrate-state"} {
		for _, end := range []string{"the other ends", "a signal"} {
			t.Run(args+", "+end, func(t *testing.T) {
				o, dir, out := scripted(t, newStore(t), "ready GET", strings.Fields(args)...)
				if args == "init -backend=false" {
					o.Environ = append(o.Environ, "WRAP_TEST_SCRIPT=ready")
				}
				if o.Wishes.Leave = args == "init -migrate-state"; o.Wishes.Leave {
					write(t, filepath.Join(dir, "main.tf"), inside(`backend "local" {}`))
				}
				path, _ := filepath.EvalSymlinks(dir)
				endOther, err := (&modules.Module{Dir: path}).HideBackend(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				told := &lines{}
				o.Stderr = told
				waits := told.expect(own(dir))
				type result struct {
					code int
					err  error
				}
				ended := make(chan result, 1)
				go func() {
					code, err := wrap.Run(t.Context(), o)
					ended <- result{code, err}
				}()
				select {
				case <-waits:
				case r := <-ended:
					t.Fatalf("it has not waited: %d, %v\n%s", r.code, r.err, told)
				}
				goesOn := end == "the other ends"
				if goesOn {
					endOther()
				} else {
					defer endOther()
					signalSelf(syscall.SIGINT)
				}
				r := <-ended
				mistakes.Ended(t, args+", "+end, told.String(), r.code, r.err)
				if goesOn != (r.code == 0 && r.err == nil) || goesOn != strings.HasPrefix(out.String(), "ready") {
					t.Errorf("%d, %v\n%s%s", r.code, r.err, told, out)
				}
			})
		}
	}
}

// TestInitOfKilledWrap: wrap is killed, and its init goes on in the data directory of all runs. The next init waits
// until that has ended.
//
// Promise: Only encrypted states
func TestInitOfKilledWrap(t *testing.T) {
	o, dir, _ := scripted(t, newStore(t), "", "init")
	p := begin(t, o, "GET ready wait leave=ended")
	if !p.until("ready") {
		t.Fatalf("%q", p.said)
	}
	_ = p.Process.Kill()
	_ = p.Wait()
	o.Environ = append(slices.Clone(o.Environ), "WRAP_TEST_SCRIPT=GET move=ended,seen")
	told := &lines{}
	o.Stderr = told
	waits := told.expect(own(dir))
	ended := make(chan error, 1)
	go func() {
		_, err := wrap.Run(t.Context(), o)
		ended <- err
	}()
	select {
	case <-waits:
	case err := <-ended:
		t.Fatalf("it has not waited: %v\n%s", err, told)
	}
	_ = p.in.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	wraptest.OpenMistakes(t, "init of a killed wrap").Said(t, "the next init", told.String())
	if read(t, filepath.Join(dir, "seen")) != state {
		t.Error("the init that goes on had not ended")
	}
}

// waitUntilLeft waits until no process has a lock of a file of wrap in a module.
func waitUntilLeft(t *testing.T, module string) {
	t.Helper()
	for t.Context().Err() == nil {
		held := false
		err := filepath.WalkDir(filepath.Join(module, files.OwnFolder), func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			f, err := os.Open(path)
			if err == nil {
				held = held || errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
				err = f.Close()
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if !held {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// TestLeavingIsKilled: a killed init -leave has its record in the data directory of the user. The next run with wrap
// removes the dead address from it, and says what to do; while the run goes on, its record stays.
//
// Promise: Runs under wrap
func TestLeavingIsKilled(t *testing.T) {
	mistakes := wraptest.OpenMistakes(t, "leaving is killed")
	for name, c := range map[string]struct {
		args   []string
		leaves bool // and the module has its new backend
	}{
		"then planned":   {args: []string{"plan"}},
		"then applied":   {args: []string{"apply"}},
		"then left":      {args: []string{"init", "-migrate-state"}, leaves: true},
		"then moved in":  {args: []string{"init"}},
		"then asked for": {args: []string{"output"}, leaves: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			o, dir, _ := scripted(t, s, "", "init", "-migrate-state")
			write(t, filepath.Join(dir, "main.tf"), inside(`backend "local" {}`))
			record := filepath.Join(dir, ".terraform", "terraform.tfstate")
			p := begin(t, o, "GET ready wait")
			if !p.until("ready") {
				t.Fatalf("%q", p.said)
			}
			again, _, _ := scripted(t, s, "GET", "plan")
			again.Command[1] = "-chdir=" + dir
			if _, _, told := run(t, again); !strings.Contains(read(t, record), "127.0.0.1") || strings.Contains(told, "killed") {
				t.Errorf("the record of a run that goes on is %s\n%s", read(t, record), told)
			}
			_ = p.Process.Kill()
			_ = p.Wait()
			_ = p.in.Close()
			p.until("") // its child ends, and lets go of its files one after the other
			waitUntilLeft(t, dir)
			if !strings.Contains(read(t, record), "127.0.0.1") {
				t.Fatal("the killed run has left no record")
			}
			if !c.leaves {
				write(t, filepath.Join(dir, "main.tf"), inside(empty))
			}
			again.Command = append(again.Command[:2:2], c.args...)
			again.Wishes.Leave = c.args[len(c.args)-1] == "-migrate-state"
			code, err, told := run(t, again)
			mistakes.Ended(t, name, strings.ReplaceAll(told, dir, "/module"), code, err)
			if text := read(t, record); strings.Contains(text, "127.0.0.1") || !strings.HasPrefix(told, "statecrypt: ") {
				t.Errorf("the record is %s\n%s", text, told)
			}
			if _, _, told := run(t, again); strings.HasPrefix(told, "statecrypt: warning: an init") {
				t.Errorf("it says so again: %s", told)
			}
		})
	}
}

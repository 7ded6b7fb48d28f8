//go:build unix

package wrap_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	stores "github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// TestKilledRuns kills wrap, whatever it does at that moment, again and again. The next run finds
// the old state or the new one, encrypted, and what was left of the lock; until the child has
// ended, nobody else gets that.
//
// Promise: States in stores
func TestKilledRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("many processes are killed")
	}
	const mine = `{"ID":"1","Operation":"OperationTypeApply","Who":"me@host","Created":"2026-11-27T00:00:00Z"}`
	after := []string{"LOCK", "GET", "ready", "POST", "ready"} // what the child has printed by then
	o, dir, out := inFile(t, "", "apply")
	path := filepath.Join(dir, "terraform.tfstate")
	write(t, path, string(seal(t, sealing, numbered(1))))
	serial, other := 1, otherFile(t, path)
	for round := range testkit.Rounds(300) {
		script := "LOCK=" + mine + " GET ready POST:1=" + numbered(serial+1) + " ready wait UNLOCK=" + mine
		o.Environ = append(o.Environ[:len(o.Environ):len(o.Environ)], "WRAP_TEST_FILE="+path)
		p := begin(t, o, script)
		steps := 1 + round%len(after)
		for _, text := range after[:steps] {
			if !p.until(text) {
				t.Fatalf("round %d: %q", round, p.said)
			}
		}
		_ = p.Process.Kill()
		_ = p.Wait()
		if waits := steps == len(after); waits && runtime.GOOS == "linux" {
			err := other.Lock(t.Context(), stores.Lock{ID: "2"})
			if _, held := errors.AsType[*stores.HeldError](err); !held {
				t.Fatalf("round %d: while the child works, someone else asked for its lock: %v", round, err)
			}
		}
		_ = p.in.Close()
		for {
			holder, err := other.Holder(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if holder == nil { // the child has ended
				break
			}
		}
		o.Environ = append(o.Environ, "WRAP_TEST_SCRIPT=LOCK="+mine+" GET UNLOCK="+mine)
		code, err, told := run(t, o)
		if code != 0 || err != nil || !strings.Contains(told, `"me@host"`) {
			t.Fatalf("round %d: the next run: %d, %v\n%s%s", round, code, err, told, out)
		}
		there, err := os.ReadFile(path)
		if info, _ := encryption.Inspect(there); err != nil || info.Kind != encryption.KindEncrypted {
			t.Fatalf("round %d: there is %.100q, %v", round, there, err)
		}
		opened, err := target(t, sealing).Decrypt(t.Context(), there)
		if err != nil {
			t.Fatal(err)
		}
		written := string(opened.Data) == numbered(serial+1)
		if !written && (string(opened.Data) != numbered(serial) || steps > 3) {
			t.Fatalf("round %d, after %d steps: there is %s", round, steps, opened.Data)
		}
		if written {
			serial++
		}
	}
	if serial == 1 {
		t.Error("nothing was written")
	}
}

// TestKilledRunsInGit does so while the repository takes a lock or a state, and before and after. There
// is the old state or the new one, the lock has its ID, and no folder stays.
//
// Promise: States in stores
func TestKilledRunsInGit(t *testing.T) {
	if testing.Short() {
		t.Skip("many processes are killed")
	}
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	const mine = `{"ID":"1","Operation":"OperationTypeApply","Who":"me@host","Created":"2026-11-27T00:00:00Z"}`
	repo := newRepository(t, string(seal(t, sealing, numbered(1))))
	at := filepath.Join(t.TempDir(), "at") // a pipe, for hooks that wait until they are killed
	if err := errors.Join(syscall.Mkfifo(at, 0o600), os.MkdirAll(filepath.Join(repo.Dir, "hooks"), 0o700)); err != nil {
		t.Fatal(err)
	}
	serial := 1
	points := []string{"post-receive main", "post-receive locks", "pre-receive main", "ready", "POST", "pre-receive locks"}
	for round := range testkit.Rounds(30) {
		point := points[round%len(points)]
		hook, ref, inHook := strings.Cut(point, " ")
		for _, name := range []string{"pre-receive", "post-receive"} {
			script := "#!/bin/sh\nread -r old new ref\ncase $ref in refs/heads/" + ref + "*) echo here >'" + at + "'; exec sleep 3600;; esac\n"
			if name != hook {
				script = "#!/bin/sh\n"
			}
			if err := os.WriteFile(filepath.Join(repo.Dir, "hooks", name), []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		script := "LOCK=" + mine + " GET ready POST:1=" + numbered(serial+1) + " wait UNLOCK=" + mine
		o, _, _ := inRepo(t, repo.FileURL(), script, "apply")
		o.Environ = append(o.Environ, "WRAP_TEST_GIT="+repo.FileURL())
		p := begin(t, o, script)
		if inHook {
			if _, err := os.ReadFile(at); err != nil {
				t.Fatal(err)
			}
		} else if !p.until(point) {
			t.Fatalf("%s: %q", point, p.said)
		}
		_ = p.Process.Kill()
		_ = p.Wait()
		_ = p.in.Close()
		for _, name := range []string{"pre-receive", "post-receive"} {
			_ = os.Remove(filepath.Join(repo.Dir, "hooks", name))
		}
		o, _, _ = inRepo(t, repo.FileURL(), "UNLOCK", "force-unlock", "1")
		if code, err, told := run(t, o); (code != 0) != (point == "pre-receive locks") || err != nil {
			t.Errorf("%s: %d, %v\n%s", point, code, err, told)
		}
		opened, err := target(t, sealing).Decrypt(t.Context(), []byte(repo.Git("cat-file", "blob", "main:"+statePath)))
		if err != nil {
			t.Fatal(err)
		}
		if point == "post-receive main" || point == "POST" {
			serial++
		}
		if string(opened.Data) != numbered(serial) {
			t.Fatalf("%s: there is %s", point, opened.Data)
		}
		if left, _ := filepath.Glob(filepath.Join(temporary, "statecrypt-git-*")); len(left) > 0 {
			t.Errorf("%s: this is left: %q", point, left)
		}
	}
}

// TestKilledAndLeft: wrap is killed while its program works, which leaves a state in plaintext then. The next run says
// so first, and encrypts it; recover writes it, and asks for nothing.
func TestKilledAndLeft(t *testing.T) {
	const mine = `{"ID":"1","Operation":"OperationTypeApply","Who":"me@host","Created":"2026-11-27T00:00:00Z"}`
	mistakes := wraptest.OpenMistakes(t, "killed, and left")
	for name, c := range map[string]struct {
		begins, left string
		half         bool // the program still writes
		plans        bool // before the state is recovered
	}{
		"a new state":            {left: numbered(1)},
		"a new state and a plan": {left: numbered(1), plans: true},
		"another one":            {begins: numbered(1), left: numbered(2)},
		"another one and a plan": {begins: numbered(1), left: numbered(2), plans: true},
		"half of one":            {begins: numbered(1), left: numbered(2)[:40], half: true, plans: true},
	} {
		t.Run(name, func(t *testing.T) {
			script := "LOCK=" + mine + " GET leave=errored.tfstate," + c.left + " ready wait"
			o, dir, _ := inFile(t, script, "apply")
			path := filepath.Join(dir, "terraform.tfstate")
			if c.begins != "" {
				write(t, path, string(seal(t, sealing, c.begins)))
			}
			o.Environ = append(o.Environ, "WRAP_TEST_FILE="+path)
			p := begin(t, o, script)
			if !p.until("ready") {
				t.Fatalf("%q", p.said)
			}
			_ = p.Process.Kill()
			_ = p.Wait()
			_ = p.in.Close()
			for holder := new(stores.Lock); holder != nil; { // until the child has ended
				var err error
				if holder, err = otherFile(t, path).Holder(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			left := filepath.Join(dir, "errored.tfstate")
			if c.plans {
				again, _, _ := inFile(t, "GET", "plan")
				again.Command[1], again.Where.Backend = o.Command[1], o.Where.Backend
				_, err, told := run(t, again)
				mistakes.Failed(t, name, strings.ReplaceAll(told, dir, "/module"), err)
				if !c.half && !strings.HasPrefix(told, "statecrypt: warning: errored.tfstate holds a plaintext state") {
					t.Errorf("it says %s", told)
				}
				if info, err := encryption.Inspect([]byte(read(t, left))); !c.half && (err != nil || info.Kind != encryption.KindEncrypted) {
					t.Errorf("it stays in plaintext: %v", err)
				}
			}
			if c.half {
				return
			}
			t.Chdir(dir)
			t.Setenv("HOME", t.TempDir())
			err, told := recovered(t, o, states.Recovery{})
			opened, failed := o.Keys.State.Decrypt(t.Context(), []byte(read(t, path)))
			if err != nil || failed != nil || string(opened.Data) != c.left {
				t.Errorf("%v, %v, %s", err, failed, told)
			}
			if notes := read(t, filepath.Join(dir, ".terraform", "statecrypt", "base.json")); strings.TrimSpace(notes) != "{}" {
				t.Errorf("these notes are left: %s", notes)
			}
		})
	}
}

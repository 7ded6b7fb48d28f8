//go:build unix

package wrap_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	stores "github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// killer kills restore at some point of its work. Wait returns when that point, or the end of the process, is reached.
type killer struct {
	restorable

	wait    func(ended <-chan struct{})
	release func() // removes the lock that a killed process leaves
}

// killers return a state for each round, at which restore is killed at another point.
func killers() map[string]func(t *testing.T, round int) killer {
	return map[string]func(t *testing.T, round int) killer{
		"file": func(t *testing.T, round int) killer {
			p := restorables()["file"](t)
			path := filepath.Join(p.dir, "terraform.tfstate")
			p.Environ = append(p.Environ, "WRAP_TEST_FILE="+path)
			exists := func(name string) func() bool {
				return func() bool {
					found, _ := filepath.Glob(filepath.Join(p.dir, name))
					return len(found) > 0
				}
			}
			changes := func(path string) func() bool {
				before := read(t, path)
				return func() bool {
					now, _ := os.ReadFile(path)
					return string(now) != before
				}
			}
			points := []func() bool{
				exists(".terraform.tfstate.lock.info"), exists("*.restored"), changes(path + ".backup"), exists(".terraform.tfstate.journal"),
				changes(path), func() bool { return false },
			}
			return killer{p, func(ended <-chan struct{}) {
				for !points[round%len(points)]() {
					select {
					case <-ended:
						return
					default:
					}
				}
			}, func() { // who has the lock next finishes a write
				next := otherFile(t, path)
				must(t, next.Lock(t.Context(), stores.Lock{ID: "next"}))
				must(t, next.Unlock(t.Context(), "next"))
			}}
		},
		"http": func(t *testing.T, round int) killer {
			s := newStore(t)
			h := &halfway{Handler: http.HandlerFunc(s.ServeHTTP), here: make(chan string)}
			s.url = nettest.Serve(t, h)
			o, dir, _ := scripted(t, s, "GET", "plan")
			s.put(seal(t, sealing, numbered(5)))
			version := filepath.Join(t.TempDir(), "older")
			write(t, version, string(seal(t, sealing, older)))
			h.begins(1+round/2%8, round%2 == 1)
			p := restorable{Options: o, dir: dir, version: version, read: func() string { return string(s.stored()) }}
			p.kept = func(t *testing.T) (kept []string) {
				for _, name := range replaced(t, dir) {
					kept = append(kept, read(t, name))
				}
				return append(kept, string(s.stored()))
			}
			return killer{p, func(ended <-chan struct{}) {
				select {
				case <-h.here:
				case <-ended:
				}
			}, func() {
				h.begins(0, false)
				s.hold(nil)
			}}
		},
		"git": func(t *testing.T, round int) killer {
			repo := newRepository(t, string(seal(t, sealing, older)))
			version := repo.Git("rev-parse", "main")
			putInto(repo, string(seal(t, sealing, numbered(5))))
			at := filepath.Join(t.TempDir(), "at") // a pipe, for hooks that wait until they are killed
			if err := errors.Join(syscall.Mkfifo(at, 0o600), os.MkdirAll(filepath.Join(repo.Dir, "hooks"), 0o700)); err != nil {
				t.Fatal(err)
			}
			points := []string{"pre-receive main", "post-receive main", "pre-receive locks", "post-receive locks"}
			hook, ref, _ := strings.Cut(points[round%len(points)], " ")
			script := "#!/bin/sh\nread -r old new ref\ncase $ref in refs/heads/" + ref + "*) echo here >'" + at + "'; exec sleep 3600;; esac\n"
			path := filepath.Join(repo.Dir, "hooks", hook)
			must(t, os.WriteFile(path, []byte(script), 0o700))
			o, dir, _ := inRepo(t, repo.FileURL(), "GET", "plan")
			o.Environ = append(o.Environ, "WRAP_TEST_GIT="+repo.FileURL())
			p := restorable{Options: o, dir: dir, version: version, read: func() string {
				return repo.Git("cat-file", "blob", "main:"+statePath)
			}, kept: func(t *testing.T) []string { return []string{string(everything(t, repo))} }}
			return killer{p, func(ended <-chan struct{}) {
				reached := make(chan error)
				go func() {
					_, err := os.ReadFile(at)
					reached <- err
				}()
				select {
				case err := <-reached:
					must(t, err)
				case <-ended:
					t.Fatal("restore has ended before")
				}
			}, func() {
				must(t, os.Remove(path))
				repo.Git("update-ref", "-d", "refs/heads/locks/"+statePath)
			}}
		},
	}
}

// TestRestoreKilled kills restore, whatever it does at that moment. There is the state before or the restored one, both
// are kept, and another try has the version restored, which is written once.
//
// Promise: Runs under wrap
func TestRestoreKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("many processes are killed")
	}
	needSignals(t)
	for store, open := range killers() {
		written := 0
		rounds := testkit.Rounds(100)
		for round := range rounds {
			t.Run(fmt.Sprint(store, " ", round), func(t *testing.T) {
				k := open(t, round)
				before := k.read()
				cmd := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this program
				cmd.Env, cmd.Dir = append(k.Environ, "WRAP_TEST_SCRIPT=restore="+k.version), k.dir
				said := &lines{}
				cmd.Stdout, cmd.Stderr = said, said
				t.Cleanup(func() {
					if t.Failed() {
						t.Logf("round %d: it says %s", round, said)
					}
				})
				must(t, cmd.Start())
				ended := make(chan struct{})
				go func() {
					_ = cmd.Wait()
					close(ended)
				}()
				k.wait(ended)
				_ = cmd.Process.Kill()
				<-ended
				k.release()
				opened, err := k.Keys.State.Decrypt(t.Context(), []byte(k.read()))
				if err != nil || !opened.Encrypted {
					t.Fatalf("round %d: %v, and there is %s", round, err, k.read())
				}
				if string(opened.Data) != numbered(5) {
					written++
				}
				if store == "file" {
					k.version = interruptedVersion(t, k, string(opened.Data) != numbered(5))
				}
				err, told := k.restored(t, false, yes)
				k.check(t, 6, err, told)
				if !strings.Contains(strings.Join(k.kept(t), "\n"), before) {
					t.Errorf("round %d: the state before is lost: %q", round, k.kept(t))
				}
				if left, _ := filepath.Glob(filepath.Join(k.dir, "*.restored")); len(left) > 0 {
					t.Errorf("round %d: this is left: %q", round, left)
				}
			})
		}
		if written == 0 || written == rounds {
			t.Errorf("%s: %d of %d killed runs have written their state", store, written, rounds)
		}
		t.Logf("%s: %d of %d killed runs have written their state", store, written, rounds)
	}
}

// interruptedVersion returns what is to be restored after an interrupted run: what that run has saved, or else what the
// file or its backup has.
func interruptedVersion(t *testing.T, k killer, written bool) string {
	t.Helper()
	saved, _ := filepath.Glob(filepath.Join(k.dir, "*.restored"))
	switch {
	case len(saved) == 1:
		if backup := filepath.Join(k.dir, "terraform.tfstate.backup"); read(t, saved[0]) != read(t, backup) {
			if err, said := k.restored(t, false, yes); err == nil {
				t.Errorf("another backup is restored than before: %s", said)
			}
		}
		return saved[0]
	case written:
		return "current"
	}
	return "backup"
}

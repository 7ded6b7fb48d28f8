//go:build unix

package file

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
)

// What TestKilled has its process write, where, and after how many steps it ends.
const (
	killFile, killText, killSteps = "FILE_TEST_KILL", "FILE_TEST_TEXT", "FILE_TEST_STEPS"
)

// TestKillMe is the process of TestKilled.
func TestKillMe(t *testing.T) {
	path := os.Getenv(killFile)
	if path == "" {
		return
	}
	steps, _ := strconv.Atoi(os.Getenv(killSteps))
	text, err := os.ReadFile(os.Getenv(killText))
	must(t, err)
	s := at(t, path)
	s.through = func(f *os.File) handle {
		return disk{f, &steps, func() error { return syscall.Kill(os.Getpid(), syscall.SIGKILL) }}
	}
	for {
		if s.Lock(t.Context(), storetest.Lock("killed")) == nil {
			break // tofu has it for a moment
		}
	}
	_, read, err := s.Read(t.Context())
	must(t, err)
	_, err = s.Write(t.Context(), text, read)
	must(t, err)
	must(t, s.Unlock(t.Context(), "killed"))
}

// TestKilled kills whoever writes, at every step, again and again. There is the old state or the
// new one afterwards, and no OpenTofu that waited meanwhile has found none.
//
// Promise: States in stores
func TestKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("many processes are killed")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "terraform.tfstate")
	tofu := newTofu(t, path)
	states := [][]byte{storetest.State(1), storetest.State(200)}
	if tofu != nil {
		states = [][]byte{tofu.apply(t, "one"), tofu.apply(t, strings.Repeat("two", 300))}
	}
	put(t, path, states[0])
	now := 0
	for round := range testkit.Rounds(1000) {
		next := 1 - now
		text := filepath.Join(dir, "next")
		put(t, text, states[next])
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKillMe$")
		steps := round % 8
		cmd.Env = append(os.Environ(), killFile+"="+path, killText+"="+text, killSteps+"="+strconv.Itoa(steps))
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		must(t, cmd.Start())
		waiting := make(chan string, 1)
		if beside := tofu != nil && round%20 == 0; beside {
			go func() { waiting <- tofu.plan(t) }()
		} else {
			waiting <- ""
		}
		err := cmd.Wait()
		if killed := err != nil && cmd.ProcessState.ExitCode() < 0; killed != (steps < 7) {
			t.Fatalf("round %d: %v\n%s", round, err, &out)
		}
		if said := <-waiting; strings.Contains(said, "to add") {
			t.Fatalf("round %d: OpenTofu has found no state:\n%s", round, said)
		}
		there, err := os.ReadFile(path)
		if err != nil || !isUnfinished(there) && !bytes.Equal(there, states[0]) && !bytes.Equal(there, states[1]) {
			t.Fatalf("round %d: there is %.100q, %v", round, there, err)
		}
		s := at(t, path)
		must(t, s.Lock(t.Context(), storetest.Lock("next")))
		if got, _, err := s.Read(t.Context()); err != nil || !bytes.Equal(got, states[next]) {
			t.Fatalf("round %d: the next one finds %.100q, %v", round, got, err)
		}
		must(t, s.Unlock(t.Context(), "next"))
		now = next
	}
}

// tofu is OpenTofu with its state in a file, encrypted.
type tofu struct {
	program, dir, path string
	env                []string
}

func newTofu(t *testing.T, path string) *tofu {
	t.Helper()
	program := os.Getenv("STATECRYPT_TOFU")
	if program == "" {
		return nil
	}
	p := &tofu{program: program, dir: t.TempDir(), path: path}
	p.env = []string{"HOME=" + p.dir, "PATH=" + os.Getenv("PATH"), "TF_IN_AUTOMATION=1", "TF_INPUT=0", "CHECKPOINT_DISABLE=1",
		"TF_CLI_ARGS=-no-color", "TF_ENCRYPTION=" + `key_provider "pbkdf2" "k" {
  passphrase = "passphrase-c4n4ry"
  iterations = 200000
}
method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }
state { method = method.aes_gcm.m }`}
	put(t, filepath.Join(p.dir, "main.tf"), []byte(`terraform {
  backend "local" { path = "`+path+`" }
}
variable "text" { default = "" }
resource "terraform_data" "x" {
  input = var.text
  lifecycle { ignore_changes = [input] }
}`))
	p.run(t, 0, "init")
	return p
}

func (p *tofu) run(t *testing.T, code int, args ...string) string {
	cmd := exec.CommandContext(t.Context(), p.program, args...)
	cmd.Dir, cmd.Env = p.dir, p.env
	out, err := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got > code || got < 0 {
		t.Errorf("tofu %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// apply makes everything again, and returns the state.
func (p *tofu) apply(t *testing.T, text string) []byte {
	t.Helper()
	p.run(t, 0, "apply", "-auto-approve", "-replace=terraform_data.x", "-var=text="+text)
	state, err := os.ReadFile(p.path)
	must(t, err)
	return state
}

// plan waits for the lock. It may refuse a state that is not finished.
func (p *tofu) plan(t *testing.T) string { return p.run(t, 1, "plan", "-lock-timeout=5m") }

// TestTofu: OpenTofu and the store stop at each other's locks.
//
// Promise: States in stores
func TestTofu(t *testing.T) {
	testkit.Program(t, "STATECRYPT_TOFU")
	path := filepath.Join(t.TempDir(), "terraform.tfstate")
	p := newTofu(t, path)
	state := p.apply(t, "one")
	s := at(t, path)
	must(t, s.Lock(t.Context(), storetest.Lock("4711")))
	if out := p.run(t, 1, "plan"); !strings.Contains(out, "4711@host") {
		t.Errorf("it does not say who has the lock:\n%s", out)
	}
	_, v, err := s.Read(t.Context())
	must(t, err)
	waiting := make(chan string)
	go func() { waiting <- p.run(t, 0, "plan", "-lock-timeout=5m") }()
	_, err = s.Write(t.Context(), bytes.TrimSpace(state), v) // other bytes of the same state
	must(t, err)
	must(t, s.Unlock(t.Context(), "4711"))
	if out := <-waiting; !strings.Contains(out, "No changes") {
		t.Errorf("it has planned from another state:\n%s", out)
	}
	if out := p.run(t, 1, "force-unlock", "-force", "4711"); strings.Contains(out, "has been successfully unlocked") {
		t.Errorf("a lock that nobody has was given back:\n%s", out)
	}
	put(t, path, append([]byte{unfinished}, state[1:]...))
	if out := p.run(t, 1, "plan"); !strings.Contains(out, "Error") || strings.Contains(out, "to add") {
		t.Errorf("a state that is not finished was read:\n%s", out)
	}
}

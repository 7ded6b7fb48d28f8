package wrap_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
)

// provisioned is a module whose resource runs a script.
func provisioned(script string) string {
	return module(empty) + `
resource "terraform_data" "script" {
  triggers_replace = var.text
  provisioner "local-exec" { command = "` + script + `" }
}
`
}

// TestAccScript: a script of the module finds the address of wrap nowhere: not in the environment, nor in the data
// directory, nor beside the plan that is applied.
//
// Promise: Only encrypted states
func TestAccScript(t *testing.T) {
	temporary, seen := t.TempDir(), filepath.Join(t.TempDir(), "seen")
	t.Setenv("TMPDIR", temporary)
	s := newStore(t)
	p := newProject(t, s.environ(), empty)
	p.env = append(p.env, "SEEN="+seen, "TMPDIR="+temporary)
	write(t, filepath.Join(p.dir, "main.tf"), provisioned(`(env; ls $TF_DATA_DIR; find . $TMPDIR $TF_DATA_DIR; grep -rl 127.0.0.1 . $TMPDIR) > $SEEN 2>&1`))
	p.must(t, "init")
	for _, args := range [][]string{{"apply", "-auto-approve"}, {"plan", "-out=p", "-var=text=" + secret + "2"}, {"apply", "p"}} {
		_ = os.Remove(seen)
		p.must(t, args...)
		if args[0] == "plan" {
			continue
		}
		text := read(t, seen)
		if !strings.Contains(text, "TF_DATA_DIR=.terraform/statecrypt/") {
			t.Errorf("%q: the script has seen %s", args, text)
		}
		hint := regexp.MustCompile(`TF_HTTP|127\.0\.0\.1|terraform\.tfstate|statecrypt-\d+/p$`)
		for line := range strings.Lines(text) {
			if hint.MatchString(strings.TrimSpace(line)) {
				t.Errorf("%q: the script has seen %s", args, line)
			}
		}
	}
	left, err := filepath.Glob(filepath.Join(p.dir, own(p.dir), "run-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("these are left: %q, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(p.dir, own(p.dir), "terraform.tfstate")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a record is left: %v", err)
	}
	s.checkSealed(t, secret)
}

// TestAccTwoSettings: two runs at once in one folder, with two settings, have a state each.
//
// Promise: Only encrypted states
func TestAccTwoSettings(t *testing.T) {
	t.Parallel()
	first, second := newStore(t), newStore(t)
	p := newProject(t, first.environ(), empty)
	begun, goOn := filepath.Join(t.TempDir(), "begun"), filepath.Join(t.TempDir(), "on")
	if err := exec.CommandContext(t.Context(), "mkfifo", begun, goOn).Run(); err != nil {
		t.Skip(err)
	}
	write(t, filepath.Join(p.dir, "main.tf"), provisioned(`if [ \"$PIPES\" ]; then echo > '`+begun+`'; cat '`+goOn+`'; fi`))
	p.must(t, "init")
	other := *p
	other.store, other.env = second.environ(), append(p.env, "TF_VAR_text=of the second")
	p.env = append(p.env, "PIPES=1")
	type result struct {
		code int
		err  error
		out  string
	}
	ended := make(chan result, 1)
	go func() {
		code, err, out := p.wrapped(t, "apply", "-auto-approve")
		ended <- result{code, err, out}
	}()
	if _, err := os.ReadFile(begun); err != nil { // until the script of the first run has begun
		t.Fatal(err)
	}
	other.must(t, "init")
	other.must(t, "apply", "-auto-approve")
	if out := other.must(t, "output", "-raw", "text"); !strings.HasSuffix(out, "of the second") {
		t.Errorf("the second run has %s", out)
	}
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := <-ended; r.code != 0 || r.err != nil {
		t.Errorf("the first run: %d, %v\n%s", r.code, r.err, r.out)
	}
	p.env = other.env[:len(other.env)-1]
	if out := p.must(t, "output", "-raw", "text"); !strings.HasSuffix(out, secret) {
		t.Errorf("the first run has %s", out)
	}
}

// TestAccInTurns: Terraform and OpenTofu work in one folder in turns, each with plans of its own, without another init.
func TestAccInTurns(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	p := newProject(t, s.environ(), empty)
	one, another := p.cli, os.Getenv("STATECRYPT_TOFU")
	if filepath.Base(one) == "tofu" {
		another, _ = exec.LookPath("terraform")
	}
	if another == "" {
		t.Skip("there is no other CLI")
	}
	name := map[string]string{"terraform": "tofu", "tofu": "terraform"}[filepath.Base(one)]
	another = called(t, another, name)
	p.must(t, "init")
	for round := range 2 {
		for _, p.cli = range []string{one, another} {
			text := filepath.Base(p.cli) + strings.Repeat("+", round)
			p.must(t, "plan", "-out=p", "-var=text="+text)
			p.must(t, "apply", "p")
			if out := p.must(t, "output", "-raw", "text"); !strings.HasSuffix(out, text) {
				t.Errorf("the output is %s", out)
			}
		}
	}
	s.checkSealed(t, filepath.Base(another)+"+")
}

// TestAccKilledRun kills wrap while a script of the module works. The CLI, which has lost its backend, leaves the state
// in errored.tfstate; the next run waits for the CLI, encrypts that file, and removes the record of the killed run.
//
// Promise: Only encrypted states
func TestAccKilledRun(t *testing.T) {
	testkit.OneIsEnough(t)
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the lock of a file is inherited only on Linux")
	}
	p := inModule(t, empty)
	p.target = target(t, sealing)
	p.must(t, "init")
	slow := newSlowly(t, p.dir)
	cmd := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this program
	cmd.Env = append(p.env, "WRAP_TEST_FILE="+p.state(), "WRAP_TEST_SCRIPT=wrap="+p.cli+",-chdir="+p.dir+",apply,-auto-approve")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = read(t, slow.started)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	write(t, slow.goOn, "")
	code, err, out := p.wrapped(t, "plan", "-lock-timeout=5m")
	if code != 0 || err != nil || !strings.Contains(out, "errored.tfstate") {
		t.Errorf("the next run: %d, %v\n%s", code, err, out)
	}
	p.checkFiles(t)
	p.must(t, "plan") // the first one had to leave the mark of the CLI that was still running
	left, err := filepath.Glob(filepath.Join(p.dir, own(p.dir), "run-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("these are left: %q, %v", left, err)
	}
}

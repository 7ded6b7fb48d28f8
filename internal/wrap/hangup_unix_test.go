//go:build unix

package wrap_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
)

// started is wrap as a program, with what it and its child print.
type started struct {
	*exec.Cmd
	in    io.Closer
	out   io.Closer
	lines *bufio.Scanner
	said  []string
}

// start runs wrap as a program whose child plays a script. Tests that start one do not run
// beside others, in whose runs hangups are ignored for a moment, also for what is started.
func start(t *testing.T, s *store, script string, args ...string) (p *started, dir string) {
	t.Helper()
	o, dir, _ := scripted(t, s, script, args...)
	write(t, filepath.Join(dir, "p"), archive(t, canary))
	return begin(t, o, script), dir
}

// begin starts a run as a program.
func begin(t *testing.T, o wrap.Options, script string) (p *started) {
	t.Helper()
	needSignals(t)
	p = &started{Cmd: exec.CommandContext(t.Context(), os.Args[0])} //nolint:gosec // this program
	p.Env = append(o.Environ, "WRAP_TEST_SCRIPT=wrap="+strings.Join(o.Command, ","), "WRAP_TEST_CHILD_SCRIPT="+script)
	stdin, keeps, err := os.Pipe() // and not that of Cmd, which Wait closes although the child of the program still reads it
	if err != nil {
		t.Fatal(err)
	}
	p.Stdin, p.in = stdin, keeps
	t.Cleanup(func() { _ = keeps.Close() }) // which ends a child that waits
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out, p.lines, p.Stdout, p.Stderr = out, bufio.NewScanner(out), in, in
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	_ = errors.Join(stdin.Close(), in.Close())
	t.Cleanup(func() { _ = out.Close() })
	return p
}

// until reads what is printed until it begins with text, or to its end.
func (p *started) until(text string) bool {
	for p.lines.Scan() {
		p.said = append(p.said, p.lines.Text())
		if text != "" && strings.HasPrefix(p.lines.Text(), text) {
			return true
		}
	}
	return text == ""
}

// end waits for the exit code.
func (p *started) end() (code int, said string) {
	p.until("")
	_ = p.Wait()
	return p.ProcessState.ExitCode(), strings.Join(p.said, "\n")
}

// TestUnusualSignals: whatever would end wrap, its child is interrupted once, and writes its
// state; nothing is left that is not encrypted, and the lock is given back.
//
// Promise: Runs under wrap
func TestUnusualSignals(t *testing.T) {
	const script = "LOCK={} GET ready signal POST=" + state + " leave=errored.tfstate UNLOCK={} pending exit=7"
	for name, signals := range map[string][]syscall.Signal{
		"a hangup": {syscall.SIGHUP}, "two hangups": {syscall.SIGHUP, syscall.SIGHUP}, "quit": {syscall.SIGQUIT},
		"aborted": {syscall.SIGABRT}, "a fault": {syscall.SIGSEGV}, "a bus error": {syscall.SIGBUS}, "a wrong number": {syscall.SIGFPE},
		"a wrong instruction": {syscall.SIGILL}, "a trap": {syscall.SIGTRAP}, "a wrong call": {syscall.SIGSYS},
		"a hangup and the end": {syscall.SIGHUP, syscall.SIGTERM}, "the end and a hangup": {syscall.SIGTERM, syscall.SIGHUP},
		"an interrupt and a hangup": {syscall.SIGINT, syscall.SIGHUP}, "aborted and the end": {syscall.SIGABRT, syscall.SIGTERM},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			// The second comes while the child writes its state.
			writes, goOn := make(chan struct{}), make(chan struct{})
			s.intercept(func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPost {
					close(writes)
					<-goOn
				}
				return false
			})
			p, dir := start(t, s, script, "apply")
			if !p.until("ready") {
				t.Fatal(p.said)
			}
			_ = p.Process.Signal(signals[0])
			<-writes
			for _, more := range signals[1:] {
				_ = p.Process.Signal(more)
			}
			close(goOn)
			code, said := p.end()
			want := "got interrupt"
			if signals[0] == syscall.SIGTERM {
				want = "got terminated"
			}
			if code != 7 || strings.Count(said, want) != 1 || !strings.Contains(said, "pending signals: 0") {
				t.Errorf("%d\n%s", code, said)
			}
			s.checkSealed(t, `"lineage":"l","outputs"`)
			expectSealed(t, filepath.Join(dir, "errored.tfstate"))
			if seen := s.requests(); count(seen, "UNLOCK") != 1 {
				t.Errorf("the backend was asked to %q", seen)
			}
		})
	}
}

// TestHangupOfAll: a hangup that the child gets as well does not end it. The one that wrap
// gets has it write its state.
//
// Promise: Runs under wrap
func TestHangupOfAll(t *testing.T) {
	s := newStore(t)
	p, _ := start(t, s, "GET pid ready signal POST="+state+" pending exit=7", "apply")
	if !p.until("ready") {
		t.Fatal(p.said)
	}
	for _, line := range p.said {
		if pid, ok := strings.CutPrefix(line, "pid "); ok {
			hangUp(t, pid)
		}
	}
	_ = p.Process.Signal(syscall.SIGHUP)
	if code, said := p.end(); code != 7 || !strings.Contains(said, "got interrupt") || !strings.Contains(said, "pending signals: 0") {
		t.Errorf("%d\n%s", code, said)
	}
	s.checkSealed(t, `"lineage":"l","outputs"`)
}

// TestReaderIsGone: if the reader of a pipe ends before the child, whether at a signal or by
// itself, the child still writes its state.
//
// Promise: Runs under wrap
func TestReaderIsGone(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"by itself": 0, "a hangup": syscall.SIGHUP, "interrupted": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			script := "GET ready ready signal ready POST=" + state + " exit=7"
			if signal == 0 {
				script = "GET ready wait ready POST=" + state + " exit=7"
			}
			p, _ := start(t, s, script, "apply")
			if !p.until("ready") {
				t.Fatal(p.said)
			}
			_ = p.out.Close()
			if signal == 0 {
				_ = p.in.Close()
			} else {
				_ = p.Process.Signal(signal)
			}
			_ = p.Wait()
			if code := p.ProcessState.ExitCode(); code != 7 {
				t.Errorf("it ended with %d", code)
			}
			s.checkSealed(t, `"lineage":"l","outputs"`)
		})
	}
}

// TestAccSignals: at signals that would end Terraform or wrap, also if the reader of a pipe
// ends with them, Terraform writes its state, and gives back the lock.
//
// Promise: Runs under wrap
func TestAccSignals(t *testing.T) {
	cliUnderTest(t)
	for name, signal := range map[string]syscall.Signal{
		"hangup": syscall.SIGHUP, "hangup-tee": syscall.SIGHUP, "interrupt-tee": syscall.SIGINT, "quit": syscall.SIGQUIT,
		"abort": syscall.SIGABRT, "fault": syscall.SIGSEGV, "call": syscall.SIGSYS,
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			p := newProject(t, s.environ(), empty)
			p.target = target(t, sealing)
			p.must(t, "init")
			needSignals(t) // now, because a run in this process has hangups ignored
			fifo := filepath.Join(p.dir, "started")
			write(t, filepath.Join(p.dir, "more.tf"), `resource "terraform_data" "slow" {
  depends_on = [terraform_data.x]
  provisioner "local-exec" { command = "trap : INT; echo > '`+fifo+`'; sleep 600 & wait" }
}`)
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			out, in, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this program
			cmd.Env = append(append(p.env, p.store...), "WRAP_TEST_SCRIPT=wrap="+p.cli+",-chdir="+p.dir+",apply,-auto-approve")
			cmd.Stdout, cmd.Stderr = in, in
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = in.Close()
			said := make(chan []byte, 1)
			go func() {
				text, _ := io.ReadAll(out)
				said <- text
			}()
			read(t, fifo) // once the provisioner runs
			if strings.HasSuffix(name, "-tee") {
				_ = out.Close()
			}
			_ = cmd.Process.Signal(signal)
			err = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != 1 {
				t.Errorf("%d, %v\n%s", code, err, <-said)
			}
			_ = out.Close()
			s.checkSealed(t, secret)
			if seen := s.requests(); count(seen, "UNLOCK") != 1 {
				t.Errorf("the backend was asked to %q", seen)
			}
			opened, err := p.target.Decrypt(t.Context(), s.stored())
			if err != nil || !bytes.Contains(opened.Data, []byte(secret)) {
				t.Errorf("what was made before is not in the state: %v", err)
			}
		})
	}
}

// TestGoesOnAlone: if wrap is killed, what the child has yet to say does not end it.
func TestGoesOnAlone(t *testing.T) {
	needSignals(t)
	s := newStore(t)
	p, dir := start(t, s, "GET ready wait ready leave=errored.tfstate", "plan")
	if !p.until("ready") {
		t.Fatal(p.said)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "errored.tfstate"), 0o600); err != nil { // whose reader waits for the child
		t.Fatal(err)
	}
	_ = p.Process.Kill()
	_ = p.Wait()
	_ = p.in.Close()
	if left := read(t, filepath.Join(dir, "errored.tfstate")); left != state {
		t.Errorf("the child has left %q", left)
	}
}

// TestSignalsAfterTheChild: a signal that comes when the child has ended does not keep wrap
// from giving back the lock, nor from removing its copies.
//
// Promise: Runs under wrap
func TestSignalsAfterTheChild(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	for _, signal := range []syscall.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGSEGV,
	} {
		s := newStore(t)
		asked, goOn := make(chan struct{}), make(chan struct{})
		s.intercept(func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == "UNLOCK" {
				close(asked)
				<-goOn
			}
			return false
		})
		p, _ := start(t, s, "LOCK={} GET wait exit=7", "show", "p")
		_ = p.in.Close()
		<-asked
		_ = p.Process.Signal(signal)
		waitForDelivery(t, p.Process.Pid, signal)
		close(goOn)
		if code, said := p.end(); code != 7 {
			t.Errorf("%v: %d\n%s", signal, code, said)
		}
		if left, _ := filepath.Glob(filepath.Join(temporary, "statecrypt-*")); len(left) > 0 {
			t.Errorf("%v: these copies are left: %q", signal, left)
		}
	}
}

// waitForDelivery returns when a signal has arrived at a process: until then, the system
// keeps it. Only Linux tells.
func waitForDelivery(t *testing.T, pid int, signal syscall.Signal) {
	t.Helper()
	for {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return
		}
		_, pending, _ := strings.Cut(string(status), "\nShdPnd:\t")
		pending, _, _ = strings.Cut(pending, "\n")
		set, err := strconv.ParseUint(pending, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		if set>>(signal-1)&1 == 0 {
			return
		}
	}
}

// TestLeftByAKilledRun: what a run that was killed has left is told of by the next one, and
// what a run has that lives is not.
//
// Promise: Runs under wrap
func TestLeftByAKilledRun(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	s := newStore(t)
	p, _ := start(t, s, "GET ready wait", "show", "p")
	if !p.until("ready") {
		t.Fatal(p.said)
	}
	notes := func() string {
		o, _, out := scripted(t, newStore(t), "GET", "plan")
		if code, err := wrap.Run(t.Context(), o); code != 0 || err != nil {
			t.Errorf("%d, %v\n%s", code, err, out)
		}
		return out.String()
	}
	if said := notes(); strings.Contains(said, temporary) {
		t.Errorf("it says %s", said)
	}
	_ = p.Process.Kill()
	_ = p.Wait()
	left, _ := filepath.Glob(filepath.Join(temporary, "statecrypt-*"))
	if said := notes(); len(left) != 1 || !strings.Contains(said, left[0]) {
		t.Errorf("it says %s, and there is %q", said, left)
	}
}

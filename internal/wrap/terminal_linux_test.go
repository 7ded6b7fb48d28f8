package wrap_test

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/clitest"
)

// On a terminal, Ctrl-C reaches the child from there, and not from us as well: the
// second one has Terraform give up. Any other signal to wrap is passed on, and in the
// background of a terminal, where no Ctrl-C arrives, each is.
func TestSignalsOnTerminal(t *testing.T) {
	t.Parallel()
	ctrlC := func(keyboard *os.File, _ *os.Process) { _, _ = keyboard.WriteString("\x03") }
	send := func(signal os.Signal) func(*os.File, *os.Process) {
		return func(_ *os.File, wrap *os.Process) { _ = wrap.Signal(signal) }
	}
	const background = `set -m; "$0" & echo "pid $!"; wait "$!"` // with set -m, a job is a process group
	for name, c := range map[string]struct {
		args   []string
		signal func(keyboard *os.File, wrap *os.Process)
		want   string
	}{
		"Ctrl-C":          {args: []string{os.Args[0]}, signal: ctrlC, want: "got interrupt"},
		"terminated":      {args: []string{os.Args[0]}, signal: send(syscall.SIGTERM), want: "got terminated"},
		"interrupted job": {args: []string{"sh", "-c", background, os.Args[0]}, signal: send(os.Interrupt), want: "got interrupt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			const script = "GET ready signal POST=" + state + " ready signal GET pending exit=7"
			o, _, _ := scripted(t, s, script, "apply")
			keyboard, terminal := clitest.Terminal(t)
			cmd := exec.CommandContext(t.Context(), c.args[0], c.args[1:]...) //nolint:gosec // this program
			cmd.Env = append(o.Environ, "WRAP_TEST_SCRIPT=wrap="+strings.Join(o.Command, ","), "WRAP_TEST_CHILD_SCRIPT="+script)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = terminal.Close() // what is left of it is the program's, and ends with it
			var shown []string
			wrap := cmd.Process
			for lines := bufio.NewScanner(keyboard); lines.Scan(); {
				shown = append(shown, lines.Text())
				if pid, job := strings.CutPrefix(lines.Text(), "pid "); job {
					n, _ := strconv.Atoi(pid)
					wrap, _ = os.FindProcess(n)
				}
				if lines.Text() == "ready" {
					c.signal(keyboard, wrap)
				}
			}
			err := cmd.Wait()
			text := strings.Join(shown, "\n")
			if cmd.ProcessState.ExitCode() != 7 || strings.Count(text, c.want) != 2 || !strings.Contains(text, "pending signals: 0") {
				t.Errorf("%v\n%s", err, text)
			}
			s.checkSealed(t, `"lineage":"l","outputs"`)
		})
	}
}

//go:build unix

package world_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// Descriptors, arguments and the status reach the program and come back.
func TestRunDependent(t *testing.T) {
	t.Parallel()
	write, inherited := pipe(t)
	_, _ = write.WriteString("inherited")
	write.Close()
	var stdout strings.Builder
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `cat; cat <&3; printf %s "$1"; exec 4<&0 && exit 3`, "sh", "a 'b'")
	cmd.Stdin, cmd.Stdout, cmd.ExtraFiles = strings.NewReader("input "), &stdout, []*os.File{inherited}
	err := world.RunDependent(cmd)
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 3 || stdout.String() != "input inheriteda 'b'" {
		t.Errorf("it printed %q and ended with %v", stdout.String(), err)
	}
	if err := world.RunDependent(exec.CommandContext(t.Context(), "statecrypt-no-such-program")); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("got %v, want %v", err, exec.ErrNotFound)
	}
}

// An agent that a program starts outlives it, as long as we do not end.
func TestDependentLeavesAgents(t *testing.T) {
	t.Parallel()
	write, fromAgent := pipe(t)
	toAgent, read := pipe(t)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `(exec >/dev/null 2>&1; read -r line <&4; echo "$line" >&3) &`)
	cmd.ExtraFiles = []*os.File{write, read}
	if err := world.RunDependent(cmd); err != nil {
		t.Fatal(err)
	}
	write.Close()
	read.Close()
	_, _ = io.WriteString(toAgent, "alive\n")
	if line, err := bufio.NewReader(fromAgent).ReadString('\n'); line != "alive\n" {
		t.Errorf("the agent said %q, %v", line, err)
	}
}

func pipe(t *testing.T) (write, read *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { read.Close(); write.Close() })
	return write, read
}

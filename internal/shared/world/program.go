package world

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os/exec"
	"time"
)

const (
	maxSaid   = 64 << 10        // the maximum amount of standard error to keep, in bytes
	waitDelay = 5 * time.Second // the time to wait for output if a descendant of the program keeps the pipe open
)

// Command returns a command that has neither a shell nor a terminal. When ctx is cancelled, the program and
// its children are stopped. The program, the first argument, is looked up in PATH. Other packages must use
// Command to start programs.
func Command(ctx context.Context, environ Environ, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = environ.Pairs()
	ownGroup(cmd)
	return cmd
}

// Program is a program to run once, without a shell or a terminal.
type Program struct {
	Args     []string // the program, which is looked up in PATH, and its arguments
	Environ  Environ
	Dir      string        // the working directory; empty for the current one
	Stdin    io.Reader     // may be nil
	Patience time.Duration // the time limit
	Limit    int           // the maximum size of standard output, in bytes

	waitDelay time.Duration // for tests; zero for the default
}

// ErrTooLong means that a program printed more than its limit.
var ErrTooLong = errors.New("the program printed too much")

// Run runs the program and returns its standard output and the beginning of its standard error. If ctx is
// cancelled, Run returns the cause; if the program exceeds its time limit, Run returns
// [context.DeadlineExceeded].
func (p Program) Run(ctx context.Context) (printed, said []byte, err error) {
	limited, cancel := context.WithTimeout(ctx, p.Patience)
	defer cancel()
	stdout, stderr := &capped{limit: p.Limit + 1}, &capped{limit: maxSaid}
	cmd := Command(limited, p.Environ, p.Args...)
	cmd.Dir = p.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = p.Stdin, stdout, stderr, cmp.Or(p.waitDelay, waitDelay)
	err = cmd.Run()
	KillGroup(cmd)
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case limited.Err() != nil:
		err = limited.Err()
	case errors.Is(err, exec.ErrWaitDelay):
		err = nil // the program has exited, but an agent that it started keeps the pipe open
	}
	if err == nil && len(stdout.kept) > p.Limit {
		err = ErrTooLong
	}
	return stdout.kept, stderr.kept, err
}

// capped is a writer that keeps only the beginning of its input. It does not embed a [bytes.Buffer], because
// ReadFrom would exceed the limit.
type capped struct {
	kept  []byte
	limit int
}

func (c *capped) Write(p []byte) (int, error) {
	c.kept = append(c.kept, p[:min(len(p), c.limit-len(c.kept))]...)
	return len(p), nil
}

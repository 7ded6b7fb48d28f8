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
	maxSaid   = 64 << 10        // bytes of standard error that are kept
	waitDelay = 5 * time.Second // for output that a descendant of the program holds open
)

// Command returns a command to run. Its program has neither a shell nor a terminal, and ends with
// ctx, together with its own children. The first argument is looked up in PATH. Other packages
// start programs only with it.
func Command(ctx context.Context, environ Environ, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = environ.Pairs()
	ownGroup(cmd)
	return cmd
}

// Program is a program to run once, without a shell and without a terminal.
type Program struct {
	Args     []string // the first is looked up in PATH
	Environ  Environ
	Dir      string        // the working directory; "" for the current one
	Stdin    io.Reader     // may be nil
	Patience time.Duration // the longest time that it may take
	Limit    int           // the most bytes of standard output

	waitDelay time.Duration // for tests; zero for the constant
}

// ErrTooLong means that a program printed more than it may.
var ErrTooLong = errors.New("the program printed too much")

// Run runs the program, and returns its standard output and the beginning of its standard error.
// It returns the error of ctx if ctx ended, and [context.DeadlineExceeded] if the program took too
// long.
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
		err = nil // the program is done; an agent that it started holds the pipe
	}
	if err == nil && len(stdout.kept) > p.Limit {
		err = ErrTooLong
	}
	return stdout.kept, stderr.kept, err
}

// capped keeps the beginning of its input. It does not embed a [bytes.Buffer], whose ReadFrom
// would exceed the limit.
type capped struct {
	kept  []byte
	limit int
}

func (c *capped) Write(p []byte) (int, error) {
	c.kept = append(c.kept, p[:min(len(p), c.limit-len(c.kept))]...)
	return len(p), nil
}

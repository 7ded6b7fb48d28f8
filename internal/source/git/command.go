package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

const (
	// killDelay is how long git may clean up after it was asked to stop.
	killDelay = 3 * time.Second

	maxStderr = 256 << 10

	maxStall = 30 * time.Second

	// maxMemory limits git, and each program that it starts, while it talks to a
	// server: it keeps the whole list of refs in memory, however long it is.
	maxMemory = 2 << 30 // bytes

	// maxWork limits the processor time of git, and of each program that it starts,
	// while it talks to a server: a few bytes of a pack can stand for many megabytes
	// that have to be put together.
	maxWork = 10 * time.Minute
)

// commandError is a git command that failed.
type commandError struct {
	said string // on stderr
	err  error
}

func (e *commandError) Error() string { return "git: " + e.err.Error() }
func (e *commandError) Unwrap() error { return e.err }

// wasKilled reports whether a signal ended git, which then says nothing of it.
func (e *commandError) wasKilled() bool {
	exit, ok := errors.AsType[*exec.ExitError](e.err)
	return ok && exit.ExitCode() < 0
}

// git runs one command in the temporary repository and returns its stderr. The command contacts no
// server: git before 2.45 does not know GIT_NO_LAZY_FETCH, and would fetch absent objects. Read, if
// not nil, receives stdout.
func (d *repository) git(ctx context.Context, stdin io.Reader, read func(stdout io.Reader) error, args ...string) (said string, err error) {
	return execute(ctx, d.environ().With("GIT_ALLOW_PROTOCOL=none"), stdin, read, (*exec.Cmd).Run, append([]string{"git"}, args...))
}

// limited returns the command with limits that its children inherit: of processor time, and in bytes
// of memory and of each file that they write. Only Linux can limit the memory that a program writes
// to without the files that it maps; Windows has no limit. A write beyond the limit fails, and does
// not kill the program.
func limited(work time.Duration, memory, file int64, command []string) []string {
	path, err := world.Find(command[0])
	if err != nil || runtime.GOOS == "windows" {
		return command // which then says so
	}
	if _, err := world.Find("sh"); err != nil {
		return command
	}
	script := fmt.Sprintf(`trap '' XFSZ; ulimit -S -f %d 2>/dev/null; ulimit -S -t %d 2>/dev/null; `, file>>9, int(work.Seconds()))
	if runtime.GOOS == "linux" {
		script += fmt.Sprintf(`ulimit -S -d %d 2>/dev/null; `, memory>>10)
	}
	return append([]string{"sh", "-c", script + `exec "$@"`, "sh", path}, command[1:]...)
}

// output returns at most limit bytes of stdout; more is an error.
func (d *repository) output(ctx context.Context, limit int64, args ...string) ([]byte, error) {
	var out []byte
	_, err := d.git(ctx, nil, keep(&out, limit), args...)
	if meter.IsTooLarge(err) {
		err = errTooManyFiles
	}
	return out, err
}

// keep reads all of at most limit bytes.
func keep(out *[]byte, limit int64) func(io.Reader) error {
	return func(stdout io.Reader) (err error) {
		*out, err = meter.Read(stdout, -1, limit)
		return err
	}
}

// execute has run start a command and wait for its end.
func execute(ctx context.Context, environ world.Environ, stdin io.Reader, read func(io.Reader) error, run func(*exec.Cmd) error,
	command []string) (string, error) {
	cmd := world.Command(ctx, environ, command...)
	var stderr capped
	cmd.Stdin, cmd.Stderr = stdin, &stderr
	cmd.WaitDelay = killDelay
	var stdout *os.File // nil if nobody reads it
	readErr := make(chan error, 1)
	if read == nil {
		readErr <- nil
	} else {
		// Package exec does not copy from a file. It would stop in the middle of a copy that
		// takes longer than WaitDelay, and git's output would look complete.
		r, w, err := os.Pipe()
		if err != nil {
			return "", err
		}
		defer context.AfterFunc(ctx, func() { _ = r.Close() })()
		stdout, cmd.Stdout = w, w
		go func() {
			err := read(r)
			_ = r.Close() // so that git stops writing
			readErr <- err
		}()
	}
	err := run(cmd)
	_ = stdout.Close()
	e := <-readErr
	if ctx.Err() != nil {
		world.KillGroup(cmd)
		return "", context.Cause(ctx)
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // git is done; a connection that the user's ssh keeps for later holds the pipe of stderr
	}
	switch exit, ok := errors.AsType[*exec.ExitError](err); {
	case e != nil && (!ok || exit.ExitCode() < 0):
		return "", e // we stopped reading, and that stopped git
	case err != nil:
		return "", &commandError{said: string(stderr.kept), err: err}
	case e != nil:
		return "", e
	}
	return string(stderr.kept), nil
}

// capped keeps the beginning: a server can make git print without end.
type capped struct{ kept []byte }

func (c *capped) Write(p []byte) (int, error) {
	c.kept = append(c.kept, p[:min(len(p), maxStderr-len(c.kept))]...)
	return len(p), nil
}

var versionLine = lazyregexp.New(`^git version (\d+)\.(\d+)`)

// checkVersion makes sure, once per run, that git is there and knows
// GIT_CONFIG_COUNT (2.31) and fetch --stdin (2.29).
func (r *run) checkVersion(ctx context.Context) error {
	r.versionMu.Lock()
	defer r.versionMu.Unlock()
	if r.versionOK {
		return nil
	}
	if _, err := world.Find("git"); err != nil {
		return fmt.Errorf("git cannot be run (%w); install git 2.31 or newer", err)
	}
	limited, cancel := context.WithTimeout(ctx, r.versionTimeout)
	defer cancel()
	var out []byte
	_, err := execute(limited, r.environment(false), nil, keep(&out, 64<<10), (*exec.Cmd).Run, []string{"git", "version", "--build-options"})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if limited.Err() != nil {
		return errors.New(`"git version" does not answer; on macOS, install the developer tools with "xcode-select --install"`)
	}
	if err != nil {
		text := `"git version" failed: ` + err.Error() // not wrapped: this is not about the server
		if e, ok := errors.AsType[*commandError](err); ok && e.said != "" {
			text += ". git said: " + outside.End(oneLine(e.said), maxSaid)
		}
		return errors.New(text)
	}
	err = checkVersionText(out)
	if r.largest = math.MaxUint32; bytes.Contains(out, []byte("sizeof-long: 8\n")) {
		r.largest = math.MaxInt64
	}
	r.versionOK = err == nil
	return err
}

func checkVersionText(text []byte) error {
	m := versionLine.FindSubmatch(text)
	if m == nil {
		return fmt.Errorf(`"git version" answered %s; git 2.31 or newer is required`, outside.Line(string(text), 100))
	}
	major, _ := strconv.Atoi(string(m[1]))
	minor, _ := strconv.Atoi(string(m[2]))
	if major < 2 || major == 2 && minor < 31 {
		return fmt.Errorf("git %d.%d is too old; git 2.31 or newer is required", major, minor)
	}
	return nil
}

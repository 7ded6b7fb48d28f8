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
	// killDelay limits how long git may clean up after it was asked to stop.
	killDelay = 3 * time.Second

	maxStderr = 256 << 10

	maxStall = 30 * time.Second

	// maxMemory limits the memory of git, and of each program that it starts, while it talks to a server. Git
	// keeps the server's whole list of refs in memory, however long it is.
	maxMemory = 2 << 30 // bytes

	// maxWork limits the processor time of git, and of each program that it starts, while it talks to a
	// server. A few bytes of a pack can expand to many megabytes.
	maxWork = 10 * time.Minute
)

// commandError is the error of a failed git command.
type commandError struct {
	said string // git's stderr output, at most maxStderr bytes
	err  error
}

func (e *commandError) Error() string { return "git: " + e.err.Error() }
func (e *commandError) Unwrap() error { return e.err }

// wasKilled reports whether a signal ended git. In that case, stderr does not contain the reason.
func (e *commandError) wasKilled() bool {
	exit, ok := errors.AsType[*exec.ExitError](e.err)
	return ok && exit.ExitCode() < 0
}

// git runs one command in the temporary repository and returns its stderr. The function read gets stdout,
// unless it is nil. The command cannot contact a server: no transport is allowed, because git before 2.45
// ignores GIT_NO_LAZY_FETCH and would fetch missing objects.
func (d *repository) git(ctx context.Context, stdin io.Reader, read func(stdout io.Reader) error, args ...string) (said string, err error) {
	return execute(ctx, d.environ().With("GIT_ALLOW_PROTOCOL=none"), stdin, read, (*exec.Cmd).Run, append([]string{"git"}, args...))
}

// limited returns the command with limits that its child processes inherit. The limits apply to processor
// time, to memory in bytes, and to the size in bytes of each file that a process writes. A write beyond the
// limit fails, but does not kill the process.
//
// Memory is limited on Linux only, where mapped files do not count. Nothing is limited on Windows, or without
// a shell.
func limited(work time.Duration, memory, file int64, command []string) []string {
	path, err := world.Find(command[0])
	if err != nil || runtime.GOOS == "windows" {
		return command // running the command returns the error
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

// output runs a git command and returns its stdout. If there are more than limit bytes, it returns
// errTooManyFiles.
func (d *repository) output(ctx context.Context, limit int64, args ...string) ([]byte, error) {
	var out []byte
	_, err := d.git(ctx, nil, keep(&out, limit), args...)
	if meter.IsTooLarge(err) {
		err = errTooManyFiles
	}
	return out, err
}

// keep returns a function that reads stdout into out, and fails if there are more than limit bytes.
func keep(out *[]byte, limit int64) func(io.Reader) error {
	return func(stdout io.Reader) (err error) {
		*out, err = meter.Read(stdout, -1, limit)
		return err
	}
}

// execute executes a command by calling run. It passes stdout to read, unless read is nil, and returns at
// most maxStderr bytes of stderr.
func execute(ctx context.Context, environ world.Environ, stdin io.Reader, read func(io.Reader) error, run func(*exec.Cmd) error,
	command []string) (string, error) {
	cmd := world.Command(ctx, environ, command...)
	var stderr capped
	cmd.Stdin, cmd.Stderr = stdin, &stderr
	cmd.WaitDelay = killDelay
	var stdout *os.File // nil if nothing reads it
	readErr := make(chan error, 1)
	if read == nil {
		readErr <- nil
	} else {
		// If stdout is a file, package exec copies nothing. Otherwise it would abort a copy that takes longer
		// than WaitDelay, and git's output would look complete.
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
		err = nil // git has ended; a connection that the user's ssh keeps open still holds the stderr pipe
	}
	switch exit, ok := errors.AsType[*exec.ExitError](err); {
	case e != nil && (!ok || exit.ExitCode() < 0):
		return "", e // git failed because read stopped reading
	case err != nil:
		return "", &commandError{said: string(stderr.kept), err: err}
	case e != nil:
		return "", e
	}
	return string(stderr.kept), nil
}

// capped keeps the first maxStderr bytes that are written to it, because a server can make git print
// endlessly.
type capped struct{ kept []byte }

func (c *capped) Write(p []byte) (int, error) {
	c.kept = append(c.kept, p[:min(len(p), maxStderr-len(c.kept))]...)
	return len(p), nil
}

var versionLine = lazyregexp.New(`^git version (\d+)\.(\d+)`)

// checkVersion returns an error unless git is installed and supports GIT_CONFIG_COUNT (2.31) and fetch
// --stdin (2.29). It also sets r.largest. Once it has succeeded, it does not run git again.
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
		text := `"git version" failed: ` + err.Error() // not wrapped, because it is not a server error
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
		return fmt.Errorf(`"git version" answered %s; install git 2.31 or newer`, outside.Line(string(text), 100))
	}
	major, _ := strconv.Atoi(string(m[1]))
	minor, _ := strconv.Atoi(string(m[2]))
	if major < 2 || major == 2 && minor < 31 {
		return fmt.Errorf("git %d.%d is too old; install git 2.31 or newer", major, minor)
	}
	return nil
}

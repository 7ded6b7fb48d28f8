// Package program runs the programs of OpenTofu's external key providers and
// methods: a header line and one JSON document on their standard output, one
// JSON document on their standard input.
//
// https://github.com/opentofu/opentofu/tree/v1.12.6/internal/encryption/keyprovider/external
// https://github.com/opentofu/opentofu/tree/v1.12.6/internal/encryption/method/external
package program

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

const (
	version   = 1
	patience  = time.Minute // what OpenTofu grants
	killDelay = 2 * time.Second
	maxHeader = 64 << 10 // bytes; later versions may add fields
	maxKept   = 64 << 10 // bytes of stderr that are kept
	maxShown  = 1000     // bytes of it that an error shows
	maxName   = 100      // bytes of a program's name that an error shows
)

// Command is a program, with its arguments, that speaks one of the two protocols.
type Command struct {
	Argv  []string // no shell; the first is looked up in PATH
	Magic string   // which protocol, as its header says
	World world.World

	patience, killDelay time.Duration // for tests; zero is what is usual
}

// What can be wrong with a program, for callers that treat them differently.
var (
	// ErrFailed means that the program is not there, or ended with a failure.
	ErrFailed = errors.New("the program failed")
	// ErrProtocol means that the program ended well, but not with an answer of
	// the protocol.
	ErrProtocol = errors.New("the program did not keep to the protocol")

	errTimeout = errors.New("the program took too long")
	errTooLong = errors.New("the program answered more than it may")
)

// Check reports a command that cannot be run.
func (c Command) Check() error {
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return errors.New("a program is required as the first element")
	}
	return nil
}

// Run gives input to the program and decodes what it answers into output. An
// answer longer than limit is an error. Secrets are cut out of what the
// program said on stderr, which is part of errors.
func (c Command) Run(ctx context.Context, input []byte, limit int, output any, secrets ...[]byte) error {
	if _, err := world.Find(c.Argv[0]); err != nil {
		return c.notFound(err)
	}
	granted := cmp.Or(c.patience, patience)
	limited, cancel := context.WithTimeoutCause(ctx, granted, errTimeout)
	defer cancel()
	limited, stop := context.WithCancelCause(limited)
	defer stop(nil)

	stdout := &answer{magic: c.Magic, limit: limit, stop: stop}
	var stderr tail
	cmd := world.Command(limited, c.World.Environ(), c.Argv...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), stdout, &stderr
	cmd.WaitDelay = cmp.Or(c.killDelay, killDelay)
	err := cmd.Run()
	if limited.Err() != nil {
		world.KillGroup(cmd)
	}
	exit, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case limited.Err() != nil && errors.Is(context.Cause(limited), errTimeout):
		err = fmt.Errorf("%w: it was stopped after %v", errTimeout, granted)
	case stdout.err != nil:
		err = stdout.err
	case exited:
		err = fmt.Errorf("%w: %v", ErrFailed, exit.ProcessState)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay): // that is an agent that it started, which holds the pipe
		return fmt.Errorf("%s could not be run: %w", c.name(), err)
	default:
		err = stdout.decode(output)
	}
	if err != nil {
		return fmt.Errorf("%s: %w%s", c.name(), err, stderr.excerpt(secrets))
	}
	return nil
}

func (c Command) notFound(err error) error {
	switch {
	case errors.Is(err, exec.ErrDot):
		return fmt.Errorf("%w: %s is found in the current directory only; write it with a path", ErrFailed, c.name())
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		if strings.ContainsAny(c.Argv[0], " \t") {
			return fmt.Errorf("%w: its name is not found, and has spaces in it: write each word of the command as an element of its own", ErrFailed)
		}
		return fmt.Errorf("%w: %s is not found", ErrFailed, c.name())
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %s is not executable", ErrFailed, c.name())
	}
	return fmt.Errorf("%s could not be run", c.name())
}

// name shows which program it is. Its arguments may hold secrets.
func (c Command) name() string {
	return outside.Quoted(filepath.Base(c.Argv[0]), maxName)
}

// answer is the program's standard output. The header is looked at as soon as
// it is there, so that a program of another kind is stopped at once.
type answer struct {
	magic  string
	limit  int
	stop   context.CancelCauseFunc
	header bool // it was there, and it was right
	body   []byte
	err    error
}

func (a *answer) Write(p []byte) (int, error) {
	a.body = append(a.body, p...)
	if !a.header {
		a.readHeader()
	}
	if a.err == nil && a.header && len(a.body) > a.limit {
		a.err = fmt.Errorf("%w: at most %d bytes are read", errTooLong, a.limit)
	}
	if a.err != nil {
		a.body = nil
		a.stop(a.err)
		return 0, a.err
	}
	return len(p), nil
}

func (a *answer) readHeader() {
	line, rest, found := bytes.Cut(a.body, []byte("\n"))
	switch {
	case len(line) > maxHeader:
		a.err = fmt.Errorf("%w: its first line is not the header", ErrProtocol)
	case found:
		// Not strict: later versions may add fields to the header.
		var h struct {
			Magic   string `json:"magic"`
			Version int    `json:"version"`
		}
		if json.Unmarshal(line, &h) != nil || h.Magic != a.magic || h.Version != version {
			a.err = fmt.Errorf(`%w: its first line must be {"magic":%q,"version":%d}`, ErrProtocol, a.magic, version)
			return
		}
		a.header, a.body = true, rest
	}
}

// decode reads the first JSON value after the header; like OpenTofu, it does
// not look at what follows. The decoder's own errors repeat what it read,
// which may be a key.
func (a *answer) decode(output any) error {
	if !a.header {
		return fmt.Errorf("%w: it printed no header line", ErrProtocol)
	}
	d := json.NewDecoder(bytes.NewReader(a.body))
	d.DisallowUnknownFields()
	if err := d.Decode(output); err != nil {
		return fmt.Errorf("%w: what follows its header is not the JSON document that is asked for, or has fields "+
			"that do not belong there", ErrProtocol)
	}
	return nil
}

// tail keeps the end of what is written: there a program says why it stopped.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p[max(0, len(p)-maxKept):]...)
	if extra := len(t.kept) - maxKept; extra > 0 {
		t.kept = append(t.kept[:0], t.kept[extra:]...)
	}
	return len(p), nil
}

// excerpt is the end of an error: the last of what the program said, without
// secrets, escaped.
func (t *tail) excerpt(secrets [][]byte) string {
	text := t.kept
	for _, s := range secrets {
		if len(s) > 0 {
			text = bytes.ReplaceAll(text, s, []byte("(secret)"))
			text = bytes.ReplaceAll(text, []byte(base64.StdEncoding.EncodeToString(s)), []byte("(secret)"))
		}
	}
	if said := outside.End(string(text), maxShown); said != "" {
		return "; it said: " + said
	}
	return ""
}

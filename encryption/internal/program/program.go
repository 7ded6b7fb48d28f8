// Package program runs programs that provide keys or encrypt data. OpenTofu's external key
// providers and methods read one JSON document from standard input, and print a header line and one
// JSON document.
//
// https://github.com/opentofu/opentofu/tree/v1.12.6/internal/encryption/keyprovider/external
//
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
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

const (
	version   = 1
	patience  = time.Minute // OpenTofu's limit
	killDelay = 2 * time.Second
	maxHeader = 64 << 10 // bytes; later versions may add fields
	maxKept   = 64 << 10 // maximum bytes of stderr that are kept
	maxShown  = 1000     // maximum bytes of stderr that an error shows
	maxName   = 100      // maximum bytes of a program's name that an error shows
)

// Command is a program with its arguments. The program speaks one of OpenTofu's two protocols, or
// another one through [Command.Talk].
type Command struct {
	Argv     []string // the program, looked up in PATH without a shell, and its arguments
	Magic    string   // the name in the header of one of OpenTofu's protocols
	World    world.World
	Patience time.Duration // maximum run time; zero means one minute

	killDelay time.Duration // for tests; zero means the constant
}

// notRun is the error for a program that did not start. It wraps [ErrFailed].
type notRun struct{}

func (notRun) Error() string { return "the program did not run" }

func (notRun) Unwrap() error { return ErrFailed }

// Callers can tell these failures apart.
var (
	// ErrFailed means that the program was not found, or exited with a failure.
	ErrFailed = errors.New("the program failed")
	// ErrProtocol means that the program's answer violates the protocol.
	ErrProtocol = errors.New("the program did not follow the protocol")

	errNotRun error = notRun{}

	errTimeout = errors.New("the program took too long")
	errTooLong = errors.New("the program's answer is too long")
)

// New returns the command in an attribute. Magic is the name of the protocol that the command
// speaks.
func New(v attr.Values, attribute, magic string) (Command, error) {
	c := Command{Argv: v.Strings(attribute), Magic: magic, World: world.For(v.Environment(), false)}
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return c, v.Errorf(attribute, "the first element is empty; set it to the name or the path of a program")
	}
	return c, nil
}

// Run passes input to the program and decodes its answer into output. An answer of more than limit
// bytes is an error. Error messages contain the end of the program's stderr, without secrets and
// without long words of the answer.
func (c Command) Run(ctx context.Context, input []byte, limit int, output any, secrets ...[]byte) error {
	return c.Talk(ctx, &question{input: input, magic: c.Magic, limit: limit, output: output, secrets: secrets})
}

// Dialog is one side of a conversation with a program.
type Dialog interface {
	// Begin is called with the program's standard input when the program runs. It may close stdin.
	Begin(stdin io.WriteCloser)
	// Hear is called with the program's output, piece by piece. [ErrDone] ends the dialog, and any
	// other error stops the program.
	Hear(stdin io.WriteCloser, printed []byte) error
	// End is called if the program exited successfully, or if the dialog is over.
	End() error
	// Clean removes secrets from the program's stderr, for errors. It is called after the program
	// has exited, because the secrets may include the program's answers.
	Clean(said []byte) []byte
}

// ErrDone means that the dialog is over. The program then has two seconds to exit, with any status.
var ErrDone = errors.New("the dialog is over")

// Talk runs the program and holds the dialog with it.
func (c Command) Talk(ctx context.Context, d Dialog) error {
	if _, err := world.Find(c.Argv[0]); err != nil {
		return c.notFound(err)
	}
	granted := cmp.Or(c.Patience, patience)
	limited, cancel := context.WithTimeoutCause(ctx, granted, errTimeout)
	defer cancel()
	limited, stop := context.WithCancelCause(limited)
	defer stop(nil)

	var stderr tail
	cmd := world.Command(limited, c.World.Environ(), c.Argv...)
	cmd.WaitDelay = cmp.Or(c.killDelay, killDelay)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("%s could not be run: %w", c.name(), err)
	}
	stdout := &ear{Dialog: d, stdin: stdin, stop: stop, delay: cmd.WaitDelay}
	cmd.Stdout, cmd.Stderr = stdout, &stderr
	if err = cmd.Start(); err == nil {
		begun := make(chan struct{})
		go func() {
			defer close(begun)
			d.Begin(stdin)
		}()
		err = cmd.Wait() // Wait closes stdin
		<-begun
	}
	if limited.Err() != nil {
		world.KillGroup(cmd)
	}
	exit, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(stdout.err, ErrDone):
		err = d.End()
	case limited.Err() != nil && errors.Is(context.Cause(limited), errTimeout):
		err = fmt.Errorf("%w: it was stopped after %v", errTimeout, granted)
	case stdout.err != nil:
		err = stdout.err
	case exited:
		err = fmt.Errorf("%w: %v", ErrFailed, exit.ProcessState)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%s could not be run: it is not executable on this system; begin a script with a line like "+
			"#!/bin/sh", c.name())
	case errors.Is(err, fs.ErrNotExist): // the interpreter in the first line of a script does not exist
		return fmt.Errorf("%s could not be run: the program in its first line does not exist; correct the line, or remove "+
			"the carriage return at its end", c.name())
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		// ErrWaitDelay means that a process that the program started, such as an agent, still holds
		// the pipe.
		return fmt.Errorf("%s could not be run: %w", c.name(), err)
	default:
		err = d.End()
	}
	if err != nil {
		return fmt.Errorf("%s: %w%s", c.name(), err, stderr.excerpt(d))
	}
	return nil
}

// ear receives the program's standard output.
type ear struct {
	Dialog

	stdin io.WriteCloser
	stop  context.CancelCauseFunc
	delay time.Duration // how long a program may run after the dialog
	err   error         // the error of Hear
}

func (e *ear) Write(p []byte) (int, error) {
	switch {
	case errors.Is(e.err, ErrDone):
		return len(p), nil
	case e.err == nil:
		e.err = e.Hear(e.stdin, p)
	}
	switch {
	case e.err == nil:
		return len(p), nil
	case errors.Is(e.err, ErrDone):
		_ = e.stdin.Close()
		time.AfterFunc(e.delay, func() { e.stop(ErrDone) })
		return len(p), nil
	}
	e.stop(e.err)
	return 0, e.err
}

// question implements [Dialog] with one question and one answer. It collects the answer.
type question struct {
	input   []byte
	magic   string
	limit   int // maximum size of the answer, in bytes
	output  any
	secrets [][]byte

	header bool // whether the header was read and is valid
	body   []byte
}

func (q *question) Begin(stdin io.WriteCloser) {
	_, _ = stdin.Write(q.input) // the program need not read its input
	_ = stdin.Close()
}

// Hear checks the header as soon as it is complete, so that the wrong kind of program is stopped at
// once.
func (q *question) Hear(_ io.WriteCloser, printed []byte) (err error) {
	q.body = append(q.body, printed...)
	if !q.header {
		err = q.readHeader()
	}
	if err == nil && q.header && len(q.body) > q.limit {
		err = fmt.Errorf("%w: at most %d bytes are read", errTooLong, q.limit)
	}
	return err
}

func (c Command) notFound(err error) error {
	switch {
	case errors.Is(err, exec.ErrDot):
		return fmt.Errorf("%w: %s is only in the current directory; write it with a path", errNotRun, c.name())
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		if strings.ContainsAny(c.Argv[0], " \t") {
			return fmt.Errorf(`%w: its name was not found and has spaces; make each word of the command a separate element, or use ["sh", "-c", "…"] for a shell command`, errNotRun)
		}
		if strings.HasPrefix(c.Argv[0], "~") {
			return fmt.Errorf("%w: ~ is not expanded in a command; use the absolute path, for example with pathexpand(\"~/…\")", errNotRun)
		}
		return fmt.Errorf("%w: %s was not found; install the program, or correct its path", errNotRun, c.name())
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %s is not executable; run chmod +x on it", errNotRun, c.name())
	}
	return fmt.Errorf("%s could not be run", c.name())
}

// name returns the name of the program in quotation marks. It leaves out the arguments, which may
// be secret.
func (c Command) name() string {
	return outside.Quoted(filepath.Base(c.Argv[0]), maxName)
}

func (q *question) readHeader() error {
	line, rest, found := bytes.Cut(q.body, []byte("\n"))
	switch {
	case len(line) > maxHeader:
		return fmt.Errorf("%w: its first line is not the header", ErrProtocol)
	case found:
		// Unknown fields are accepted, because later versions may add fields to the header.
		var h struct {
			Magic   string `json:"magic"`
			Version int    `json:"version"`
		}
		if json.Unmarshal(line, &h) != nil || h.Magic != q.magic || h.Version != version {
			return fmt.Errorf(`%w: its first line must be {"magic":%q,"version":%d}; write logs to standard error`, ErrProtocol,
				q.magic, version)
		}
		q.header, q.body = true, rest
	}
	return nil
}

// End decodes the first JSON value after the header and, like OpenTofu, ignores the rest. It
// replaces the decoder's errors, which repeat parts of the answer, such as a key.
func (q *question) End() error {
	if !q.header {
		return fmt.Errorf("%w: it printed no header line; check that the program is for OpenTofu", ErrProtocol)
	}
	d := json.NewDecoder(bytes.NewReader(q.body))
	d.DisallowUnknownFields()
	err := d.Decode(q.output)
	_, corrupt := errors.AsType[base64.CorruptInputError](err)
	_, broken := errors.AsType[*json.SyntaxError](err)
	switch {
	case err == nil:
		return nil
	case corrupt:
		return fmt.Errorf("%w: the keys or the data after its header are not in standard base64", ErrProtocol)
	case len(bytes.TrimSpace(q.body)) == 0:
		return fmt.Errorf("%w: nothing follows its header; print a JSON document after the header", ErrProtocol)
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		return fmt.Errorf("%w: the JSON after its header has an unknown field; use only the fields of OpenTofu's protocol",
			ErrProtocol)
	case broken:
		return fmt.Errorf("%w: the text after its header is not JSON; write all other output to standard error", ErrProtocol)
	}
	return fmt.Errorf("%w: the JSON after its header is not the document of OpenTofu's protocol", ErrProtocol)
}

// Clean returns stderr without secrets and without long words of the answer. A shell script with
// "set -x", for example, prints the key on stderr.
func (q *question) Clean(said []byte) []byte {
	said = Without(said, q.secrets...)
	const long = 16
	outOfWords := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("+/_-", r)
	}
	for _, word := range bytes.FieldsFunc(said, outOfWords) {
		if len(word) >= long && bytes.Contains(q.body, word) {
			said = bytes.ReplaceAll(said, word, []byte("(secret)"))
		}
	}
	return said
}

// tail keeps the end of a program's stderr, which shows why the program stopped.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p[max(0, len(p)-maxKept):]...)
	if extra := len(t.kept) - maxKept; extra > 0 {
		t.kept = append(t.kept[:0], t.kept[extra:]...)
	}
	return len(p), nil
}

// excerpt returns the end of an error message: the end of the program's stderr, escaped and without
// secrets.
func (t *tail) excerpt(d Dialog) string {
	if said := outside.End(string(withoutUsage(d.Clean(t.kept))), maxShown); said != "" {
		return ". The program said: " + said
	}
	return ""
}

// withoutUsage removes the usage text that many programs print together with the reason for a failure. It removes the
// line that begins with "Usage:", and the blank lines, indented lines and headings after it. If nothing would be left,
// it returns the text unchanged.
func withoutUsage(said []byte) []byte {
	var kept []byte
	usage := false
	for line := range bytes.Lines(said) {
		words := bytes.TrimSpace(line)
		usage = bytes.HasPrefix(words, []byte("Usage:")) ||
			usage && (len(words) == 0 || line[0] == ' ' || line[0] == '\t' || words[len(words)-1] == ':')
		if !usage {
			kept = append(kept, line...)
		}
	}
	if len(kept) == 0 {
		return said
	}
	return kept
}

// Without returns text without secrets, in plain form, in base64 and in hexadecimal digits.
func Without(text []byte, secrets ...[]byte) []byte {
	for _, s := range secrets {
		if len(s) == 0 {
			continue
		}
		for _, spelling := range []string{
			string(s), base64.RawStdEncoding.EncodeToString(s), base64.RawURLEncoding.EncodeToString(s), fmt.Sprintf("%x", s), fmt.Sprintf("%X", s),
		} {
			text = bytes.ReplaceAll(text, []byte(spelling), []byte("(secret)"))
		}
	}
	return text
}

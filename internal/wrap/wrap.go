package wrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/notice"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/child"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/cmdline"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
)

// Options holds the command to run, the place of its state, the keys, and the user's wishes.
type Options struct {
	Where    states.Where
	Keys     states.Keys
	Wishes   Wishes
	Command  []string // terraform or tofu, and its arguments
	Environ  []string // the environment variables of the caller
	Withhold []string // names of variables hidden from the child; "TF_VAR_" stands for all with this prefix

	// Several goroutines and the child write to Stderr. It must be an *os.File or a writer that is safe for concurrent
	// use.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Wishes holds the user's flags that affect the state.
type Wishes struct {
	Force           bool // allows writing a state whose lineage differs from the state that was read
	Accept          bool // accepts the state in the backend, even if wrap has seen another lineage or a newer serial
	EncryptExisting bool // encrypts an existing state before init
	Leave           bool // lets init -migrate-state move the state to a backend without wrap
	Pins            states.Pins
}

// Run runs the command and returns its exit code, or 128 plus the signal number if a signal ended it. If Run returns an
// error, the exit code always indicates a failure.
//
// Run passes signals on to the child. A caller must not cancel ctx when a signal arrives, because that would interrupt
// the child twice. If ctx is canceled, Run interrupts the child and still waits for it, so that the child can write its
// state.
func Run(ctx context.Context, o Options) (exitCode int, err error) {
	defer child.SurvivePipes()()
	until, interrupt := context.WithCancelCause(ctx) // canceled by a signal before the child starts; cleanup steps still run
	defer interrupt(nil)
	caught := child.Catch(func(s os.Signal) { interrupt(fmt.Errorf("%s signal received", s)) })
	defer caught.Stop()
	if _, err := newProgram(o.Command, o.Environ); err != nil {
		return 1, err
	}
	l, err := cmdline.Read(o.Command, o.Environ, o.Wishes.Leave)
	if err != nil {
		return 1, err
	}
	r := newRun(o, l, caught)
	switch moves := o.Wishes.EncryptExisting || o.Wishes.Leave; {
	case moves && (l.Name != "init" || l.Effect() == cmdline.Passes):
		return 1, errors.New("-encrypt-existing and -leave work only with an init that uses the backend; remove these flags")
	case o.Wishes.Leave && (o.Wishes.EncryptExisting || !l.Has("migrate-state")):
		return 1, errors.New("-leave works only with init -migrate-state and without -encrypt-existing; run " +
			"statecrypt wrap -config " + fault.Config + " -leave -- terraform init -migrate-state")
	case l.Effect() == cmdline.Passes:
		return r.passThrough(until)
	}
	code, err := r.protect(until)
	const changed = 2 // the exit code of plan -detailed-exitcode if there are changes
	if err != nil && (code == 0 || code == changed) {
		code = 1
	}
	return code, err
}

// NeedsNoState reports whether the command neither reads nor writes a state. Such a command needs no key and no store,
// only the names of the variables to hide from the child.
func NeedsNoState(command, environ []string) bool {
	l, err := cmdline.Read(command, environ, false)
	return err == nil && l.Effect() == cmdline.Passes
}

// Recover writes the state that an earlier run in this module could not write. It can be called again after any
// failure.
func Recover(ctx context.Context, o Options, asked states.Recovery) error {
	return alone(ctx, "recover", o, func(r *run) error {
		if err := r.checkWorkspace(ctx); err != nil { // the leftover may be the state of that workspace
			return err
		}
		return asked.Write(ctx, r.guard, r.leftover, r.unused)
	})
}

// Restore writes an older version of the state of this module. It can be called again after any failure.
func Restore(ctx context.Context, o Options, asked states.Restoration) error {
	return alone(ctx, "restore", o, func(r *run) error {
		if err := r.leftover.Check(false, ""); err != nil { // only warns
			return err
		}
		return asked.Write(notice.With(ctx, r.say), r.guard, r.leftover)
	})
}

// alone calls do for the module in the working directory, without a program.
func alone(ctx context.Context, name string, o Options, do func(r *run) error) (err error) {
	l, err := cmdline.Here(name, o.Environ)
	if err != nil {
		return err
	}
	r := newRun(o, l, nil)
	defer func() { err = errors.Join(err, r.close()) }()
	o.Where.NoteVariables(o.Environ, r.say)
	if err := r.connect(ctx); err != nil {
		return err
	}
	return do(r)
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/replace"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
)

// rotation holds the settings for changing the key or format of files.
type rotation struct {
	from, to encryption.Target
	again    bool // whether to encrypt files again that already have the new key
	alone    bool // whether there are no old settings
	apart    bool // whether no file can be opened with both the old settings and the first new method
	counts   bool // whether to increment the serial of a state when its key changes
}

// stateInBackend is used in messages instead of a file name.
const stateInBackend = "the state in the backend"

// rotate changes the key of files in place, or of the state in the backend.
func (c *call) rotate(ctx context.Context) error {
	r, err := c.rotation()
	if err != nil {
		return err
	}
	if !r.again {
		c.noteDoubts()
	}
	if !c.on("separate") && (r.apart || r.again) {
		r.to.Prepare(ctx)
	}
	change, examine, older := c.changeFile, c.all, "backups and other copies"
	if c.on("backend") {
		kept, err := c.states(ctx, c.text("to"), r.to)
		if err != nil {
			return err
		}
		defer kept.Close()
		older, r.counts = kept.Kind.Older, kept.Kind.Counts
		change = func(ctx context.Context, name string, change func([]byte) ([]byte, error)) error {
			return kept.Rotate(ctx, c.inStore(name), func(state []byte) ([]byte, error) {
				defer c.reserve(ctx, int64(len(state)))()
				return change(state)
			})
		}
		if c.isGiven("prefix") {
			examine = func(ctx context.Context, rotate func(ctx context.Context, name string) (finding, error)) error {
				return c.all(ctx, c.needed(r, kept, rotate))
			}
		}
	}
	var rotated atomic.Bool
	err = examine(ctx, func(ctx context.Context, name string) (finding, error) {
		f, others := finding{Result: resultSkipped}, replace.OtherNames(name)
		err := change(ctx, name, func(file []byte) ([]byte, error) {
			sealed, err := r.seal(ctx, &f, file)
			if sealed != nil {
				f.Result = resultRotated
			}
			return sealed, err
		})
		_, isStuck := errors.AsType[*states.StuckError](err)
		held, isHeld := errors.AsType[*store.HeldError](err)
		switch {
		case isStuck: // the rotation itself succeeded
		case isHeld && c.isGiven("prefix"):
			if f.Result = resultHeld; held.By != nil {
				err = errors.New(held.By.Describe())
			}
		case err != nil:
			f.Result, f.Method, f.Recipients = resultFailed, "", 0 // the file keeps its method and recipients
		case others != "" && f.Result == resultRotated:
			f.notes = append(f.notes, others)
		}
		if f.Result == resultRotated {
			rotated.Store(true)
		}
		return f, err
	})
	switch {
	case rotated.Load():
		c.say(yellow, "note:", "older versions ("+older+") can still be opened with the old keys; if someone has left, or a key has "+
			"leaked, replace the secrets in the state")
	case err == nil && len(c.args) > 0:
		c.say(yellow, "note:", "nothing was changed, because the primary method in -to can already decrypt everything; check that -to "+
			"has the new key, and that -from has the old key")
	}
	return err
}

// needed returns a function that first reads a state without its lock, and calls rotate only if necessary. If there
// are many states, most may already have the new key, and some files may not be states.
func (c *call) needed(
	r rotation, kept *states.States, rotate func(ctx context.Context, name string) (finding, error),
) func(context.Context, string) (finding, error) {
	return func(ctx context.Context, name string) (finding, error) {
		f, err := c.mustRotate(ctx, r, kept, name)
		if f.Result == "" {
			return rotate(ctx, name)
		}
		return f, err
	}
}

// mustRotate returns a finding without a result if a state must get the new key.
func (c *call) mustRotate(ctx context.Context, r rotation, kept *states.States, name string) (f finding, err error) {
	state, err := kept.Read(ctx, name)
	if errors.Is(err, states.ErrNone) {
		return finding{Result: resultOther}, nil
	}
	if err != nil {
		return finding{Result: resultFailed}, err
	}
	defer c.reserve(ctx, int64(len(state)))()
	if kind, err := inspectFile(name, state); err != nil || kind.Kind != "encrypted" && kind.Kind != "state" {
		return finding{Result: resultOther}, nil //nolint:nilerr // the user did not name this file as a state
	}
	if r.apart {
		if _, err := r.from.Decrypt(ctx, state); err == nil {
			return finding{}, nil
		}
	}
	opened, err := r.to.Decrypt(ctx, state)
	if err != nil || !isNew(opened) || r.again {
		return finding{}, nil //nolint:nilerr // rotate reports the error
	}
	settled, err := kept.IsSettled(ctx, name, state)
	switch {
	case err != nil:
		return finding{Result: resultFailed}, err
	case !settled:
		return finding{}, nil
	}
	f.Result = resultSkipped
	f.add(opened)
	return f, nil
}

// rotation reads the old and the new settings.
func (c *call) rotation() (r rotation, err error) {
	if err := c.checkRotation(); err != nil {
		return r, err
	}
	r.again, r.alone = c.on("again"), c.text("from") == ""
	if r.from, err = c.target(cmp.Or(c.text("from"), c.text("to"))); err != nil && c.text("from") != "" {
		return r, fmt.Errorf("-from: %w", err)
	}
	old := c.backend
	r.to, err = c.target(c.text("to")) // read last, so that its backend is the one used
	if err == nil && c.on("backend") && c.backend == nil && old != nil && c.text("from") != "" {
		c.say(yellow, "note:", "the backend block is in the settings of -from, but it must be in the settings of -to; move the block")
	}
	if err == nil {
		err = refusePlaintext(r.to)
	}
	if err != nil {
		return r, fmt.Errorf("-to: %w", err)
	}
	r.apart = !r.to.MayShareKey(r.from)
	if c.on("separate") {
		r.to = r.to.Separate()
	}
	return r, nil
}

// checkRotation returns an error for flags that contradict each other.
func (c *call) checkRotation() error {
	switch {
	case c.on("backend") != (len(c.args) == 0):
		return usageError(c.miscounted().Error())
	case twice(c.args) != "":
		return usageError("the file " + shown(twice(c.args)) + " is given twice; give each file only once")
	case c.on("backend") && c.on("plan"):
		return usageError("a backend contains no plans; remove -plan")
	case c.text("to") == "" || c.text("from") == "" && !c.on("again"):
		return usageError("the command rotate requires two flags, either -from and -to, or -again and -to; see statecrypt rotate -h")
	case c.text("from") == syntax.Unencrypted:
		return usageError("-from requires a settings file; use statecrypt encrypt to encrypt plaintext")
	case c.text("to") == syntax.Unencrypted:
		return usageError("-to requires a settings file; use statecrypt decrypt to write plaintext")
	case c.hasEnvironment():
		return usageError("TF_ENCRYPTION is set, and would change the settings of both -from and -to; unset this variable")
	case slices.Contains(c.args, stdinName):
		return usageError("the command rotate cannot replace standard input; give the names of files")
	}
	return nil
}

// twice returns the first name that repeats an earlier one, or an empty string if there is none.
func twice(names []string) string {
	seen := map[string]bool{}
	for _, name := range names {
		if seen[filepath.Clean(name)] {
			return name
		}
		seen[filepath.Clean(name)] = true
	}
	return ""
}

// changeFile replaces the content of a file with the result of change, unless the result is nil.
func (c *call) changeFile(ctx context.Context, name string, change func([]byte) ([]byte, error)) error {
	before, err := os.Stat(name)
	if err != nil {
		return reason(name, err)
	}
	file, err := c.readUntil(ctx, name)
	if err != nil {
		return err
	}
	changed, err := change(file)
	if err != nil || changed == nil {
		return err
	}
	return replace.File(ctx, name, changed, before)
}

// refusePlaintext returns an error for settings that would store plaintext.
func refusePlaintext(target encryption.Target) error {
	if m := target.Methods()[0]; strings.HasPrefix(m, "method."+syntax.Unencrypted+".") {
		return fmt.Errorf("%s does not encrypt; set a method that encrypts", m)
	}
	return nil
}

// seal returns the new content of the file, or nil if the file already has the new key and need not be encrypted
// again. It overwrites the file's memory.
func (r rotation) seal(ctx context.Context, f *finding, file []byte) ([]byte, error) {
	readers := states.Recipients(file)
	opened, ofNew, err := r.open(ctx, file)
	if err != nil {
		return nil, err
	}
	if ofNew && !r.again {
		f.add(opened)
		return nil, nil
	}
	plain := opened.Data
	if r.counts {
		if plain, err = store.Next(plain); err != nil {
			return nil, err
		}
	}
	sealed, again, err := states.Seal(ctx, r.to, plain, plain)
	if err != nil {
		return nil, err
	}
	f.add(again)
	f.Recipients = states.Recipients(sealed)
	f.opened.Warnings = append(opened.Warnings, again.Warnings...)
	if note := states.NoteRecipients(readers, sealed); note != "" {
		f.notes = append(f.notes, note)
	}
	return sealed, nil
}

// isNew reports whether the new settings would encrypt the file in the same way as it is now: with their first method,
// and with the metadata names that OpenTofu expects.
func isNew(opened *encryption.Opened) bool { return !opened.UsedFallback && !opened.IsRenamed() }

// open decrypts a file, and reports whether it is already encrypted as the new settings would encrypt it. It
// overwrites the file's memory. If r.apart is set, it tries the old settings first, so that no key is derived in vain.
func (r rotation) open(ctx context.Context, file []byte) (opened *encryption.Opened, ofNew bool, err error) {
	var errOld error
	if r.apart {
		if opened, errOld = r.from.Decrypt(ctx, file); errOld == nil {
			return opened, false, nil
		}
	}
	opened, errNew := r.to.Decrypt(ctx, file)
	switch {
	case errNew == nil && !opened.UsedFallback:
		return opened, isNew(opened), nil
	case errNew != nil && r.alone:
		return nil, false, errNew
	case !r.apart:
		opened, errOld = r.from.DecryptInPlace(ctx, file)
	}
	if errOld != nil {
		return nil, false, notOpened(errOld, errNew)
	}
	return opened, false, nil
}

// notOpened returns the error for a file that the old settings cannot open.
func notOpened(errOld, errNew error) error {
	switch {
	case errNew == nil:
		return fmt.Errorf("a fallback of -to opens the file, but the settings of -from do not, and must contain the method of that "+
			"fallback: %w", errOld)
	case errors.Is(errOld, encryption.ErrPlaintext) && errors.Is(errNew, encryption.ErrPlaintext):
		return errors.New("it is not encrypted, so there is no key to change; to encrypt it, select the method \"unencrypted\" in " +
			"-from. A file can also be encrypted with statecrypt encrypt")
	case isOfFile(errOld) && isOfFile(errNew) && reflect.DeepEqual(fault.In(errOld), fault.In(errNew)):
		return errNew
	}
	return fault.List{
		fmt.Errorf("neither the settings of -from nor the settings of -to open it.\n-from: %w", errOld), fmt.Errorf("-to: %w", errNew),
	}
}

// isOfFile reports whether an error is about the file itself, and not about one of the methods tried.
func isOfFile(err error) bool {
	failed, ok := errors.AsType[*encryption.Error](err)
	return ok && failed.Step == encryption.StepEnvelope && len(failed.Attempts) == 0
}

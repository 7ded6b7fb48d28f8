package wrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// handover is what the child gets in the place of files that are sealed, or that
// are checked: copies in a folder of our own, which nobody else exchanges. They go
// when the child has ended.
type handover struct {
	o    Options
	call *invocation
	dir  string // "" until it is needed
	plan string // where the plan that is made belongs, "" if it is not sealed
	made string // where the child writes it
}

// prepare opens the files that the command names, and gives their copies to the child.
func (h *handover) prepare(ctx context.Context) error {
	open := h.opener()
	for at, name := range h.call.args {
		if open != nil && name != "-" {
			if err := h.copy(ctx, &h.call.args[at], open); err != nil {
				return err
			}
		}
	}
	for at, f := range h.call.flags {
		if takes, _ := h.call.command.flag(f.name); f.name != "plan" || !takes { // of console, it is a switch
			continue
		}
		if err := h.copy(ctx, &h.call.flags[at].value, h.plaintext); err != nil {
			return err
		}
	}
	return h.intercept()
}

// copy puts the name of a copy in the place of that of a file.
func (h *handover) copy(ctx context.Context, name *string, open func(context.Context, string) ([]byte, error)) error {
	content, err := open(ctx, *name)
	path := ""
	if err == nil {
		path, err = h.file(filepath.Base(*name), content)
	}
	if err != nil {
		return fmt.Errorf("the file %s: %w", outside.Quoted(*name, 300), err)
	}
	*name = path
	return nil
}

// opener returns what opens the file in an argument, nil for commands whose
// arguments are no files.
func (h *handover) opener() func(context.Context, string) ([]byte, error) {
	switch h.call.name {
	case "apply":
		return h.checked
	case "show", "state push":
		return h.plaintext
	}
	return nil
}

// checked returns a plan that may be applied.
func (h *handover) checked(ctx context.Context, name string) ([]byte, error) {
	content, err := h.plaintext(ctx, name)
	if err == nil {
		err = checkPlan(content)
	}
	return content, err
}

// plaintext opens a plan or a state. What is plaintext already may be so, unless
// the settings say how plans are encrypted.
func (h *handover) plaintext(ctx context.Context, name string) ([]byte, error) {
	path, err := resolve(h.call.dir, name)
	if err != nil {
		return nil, err
	}
	content, err := readFile(path)
	if err != nil {
		return nil, err
	}
	sealsPlans := len(h.o.Plan.Methods()) > 0
	info, err := encryption.Inspect(content)
	switch {
	case err != nil:
		return nil, err
	case info.Kind == encryption.Encrypted:
		return h.unsealed(ctx, content, sealsPlans)
	case info.Kind == encryption.Plan && sealsPlans:
		opened, err := h.o.Plan.Decrypt(ctx, content)
		if err != nil {
			return nil, err
		}
		return opened.Data, nil
	}
	return content, nil
}

// unsealed opens what is a plan or, if it is none, a state.
func (h *handover) unsealed(ctx context.Context, content []byte, sealsPlans bool) ([]byte, error) {
	var errPlan error
	if sealsPlans {
		opened, err := h.o.Plan.Decrypt(ctx, content)
		if err == nil {
			return opened.Data, nil
		}
		errPlan = err
	}
	opened, err := h.o.State.Decrypt(ctx, content)
	switch {
	case err == nil:
		return opened.Data, nil
	case errPlan != nil:
		return nil, errPlan
	}
	return nil, fmt.Errorf("%w; if it is a plan, the settings require a plan block", err)
}

// intercept has the child write its plan where nobody else looks, to be sealed.
func (h *handover) intercept() error {
	switch {
	case h.call.name != "plan" || !h.call.has("out"):
		return nil
	case len(h.o.Plan.Methods()) == 0:
		say(h.o.Stderr, "warning: the plan will not be encrypted, because the settings have no plan block")
		return nil
	}
	for i, f := range h.call.flags {
		if f.name != "out" {
			continue
		}
		folder, name := filepath.Split(f.value)
		folder, err := resolve(h.call.dir, folder+".")
		if err == nil {
			err = h.open()
		}
		if err != nil {
			return fmt.Errorf("the plan %s cannot be saved: %w", outside.Quoted(f.value, 300), err)
		}
		h.plan, h.made = filepath.Join(folder, name), filepath.Join(h.dir, "made-"+name) // of several, the last one counts
		h.call.flags[i].value = h.made
	}
	return nil
}

// open makes the folder for the copies.
func (h *handover) open() (err error) {
	if h.dir == "" {
		h.dir, err = os.MkdirTemp("", "statecrypt-")
	}
	return err
}

// file puts content into a file that only this user reads.
func (h *handover) file(name string, content []byte) (path string, err error) {
	if err := h.open(); err != nil {
		return "", err
	}
	path = filepath.Join(h.dir, name)
	return path, os.WriteFile(path, content, 0o600)
}

// finish seals the plan that the child has made, if it has, and removes the copies.
func (h *handover) finish(ctx context.Context) error {
	defer os.RemoveAll(h.dir)
	if h.plan == "" {
		return nil
	}
	content, err := readFile(h.made)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var sealed []byte
	if err == nil {
		sealed, err = seal(ctx, h.o.Plan, content)
	}
	if err == nil {
		err = replace(h.plan, sealed)
	}
	if err != nil {
		return fmt.Errorf("the plan was not saved: %w", keyfile.Reason(err))
	}
	say(h.o.Stderr, fmt.Sprintf("the plan is in %s, encrypted; apply it with wrap", h.plan))
	return nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errors.New("it is not a regular file"))
	}
	return source.Read(f, -1, maxState)
}

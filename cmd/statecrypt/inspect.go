package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/words"
)

// inspection is the description of a file to print. It is documented in the help of the command.
type inspection struct {
	File         string   `json:"file"`
	Kind         string   `json:"kind"`
	Format       string   `json:"format,omitempty"`
	Version      string   `json:"encryption_version,omitempty"`
	Serial       *int64   `json:"serial,omitempty"`
	Lineage      string   `json:"lineage,omitempty"`
	KeyProviders []string `json:"key_providers,omitempty"`
	Lock         **lock   `json:"lock,omitempty"` // see lockOf
	Error        string   `json:"error,omitempty"`

	info   encryption.Info
	locked string // who holds the lock, "free" or "unknown"; "" for a file
}

// lock describes the holder of a lock, in the same terms as the data source. It is documented in the help of the
// commands.
type lock struct {
	ID        string `json:"id,omitempty"`
	Who       string `json:"who,omitempty"`
	Operation string `json:"operation,omitempty"`
	Created   string `json:"created,omitempty"`
}

// lockOf returns the description of a lock. The description is nil, and JSON leaves the member out, if the status is
// unknown. It points to nil, which is null in JSON, if nobody holds the lock.
func lockOf(status states.LockStatus) **lock {
	switch holder := status.Holder; {
	case holder != nil:
		return new(&lock{ID: holder.ID, Who: holder.Who, Operation: holder.Operation, Created: holder.Created})
	case status.Free:
		return new(*lock)
	}
	return nil
}

func (c *call) inspect(ctx context.Context) error {
	if c.on("backend") {
		return c.inspectBackend(ctx)
	}
	return c.each(ctx, func(_ context.Context, name string, file []byte) error {
		found, err := inspectFile(name, file)
		return c.printInspection(found, file, err)
	})
}

// printInspection prints the description of a file. With -json, it prints one even if the file is damaged.
func (c *call) printInspection(found inspection, file []byte, damage error) error {
	var text string
	switch {
	case c.on("json"):
		if damage != nil {
			found.Error = c.audience().Text(damage)
		}
		encoded, _ := json.Marshal(found) // strings and numbers can always be encoded
		text = outside.JSON(string(encoded)) + "\n"
	case damage == nil:
		text = fault.Name(found.text(c.shown(found.File), file), c.settingsFile())
	}
	_, err := io.WriteString(c.stdout, text)
	return cmp.Or(damage, err)
}

// inspectBackend inspects states in the backend. It needs no key: it uses only the backend block of the
// settings.
func (c *call) inspectBackend(ctx context.Context) error {
	if len(c.args) > 0 {
		return usageError("the command inspect cannot combine files with -backend; remove the files, or remove -backend")
	}
	if _, err := c.settings(c.text("config")); err != nil && c.backend == nil {
		return err
	}
	kept, err := c.states(ctx, c.text("config"), encryption.Target{})
	if err != nil {
		return err
	}
	defer kept.Close()
	ctx, stop := untilSignal(ctx)
	defer stop()
	ctx, work := c.begin(ctx, len(c.args))
	defer work.stop()
	var worst error
	others := 0
	for _, name := range c.args {
		work.done.Add(1)
		state, status, err := kept.LookAtLock(ctx, c.inStore(name))
		if err != nil && status.Holder != nil { // there is no state yet
			c.say(yellow, "note:", c.holder(status.Holder))
		}
		if err == nil {
			found, damage := inspectFile(name, state)
			switch found.Lock = lockOf(status); {
			case status.Holder != nil:
				found.locked = c.holder(status.Holder)
			case status.Free:
				found.locked = "free"
			default:
				found.locked = "unknown"
			}
			if err = states.ErrNone; !c.isGiven("prefix") || damage != nil || found.Kind == "encrypted" || found.Kind == "state" {
				err = c.printInspection(found, state, damage)
			}
		}
		switch {
		case ctx.Err() != nil && err != nil:
			return err
		case c.isGiven("prefix") && errors.Is(err, states.ErrNone):
			others++
		case err != nil:
			c.report(fmt.Errorf("%s: %w", c.shown(name), err))
			worst = exitStatus(exitFailure)
		}
	}
	c.noteOthers(others, len(c.args))
	return worst
}

// holder describes the holder of a lock. If the lock is on the state in the backend block, the text also says
// how to release it.
func (c *call) holder(l *store.Lock) string {
	if c.isGiven("prefix") {
		return l.Describe()
	}
	return l.Holder()
}

func inspectFile(name string, file []byte) (inspection, error) {
	info, err := states.Describe(file)
	found := inspection{
		info: info,

		File: name, Kind: [...]string{"unknown", "empty", "encrypted", "state", "plan", "backend_record"}[info.Kind],
		Version: info.Version, Serial: info.Serial, Lineage: info.Lineage, KeyProviders: info.KeyProviders,
	}
	if info.Kind == encryption.KindEncrypted {
		found.Format = "opentofu"
		return found, err
	}
	for _, m := range builtin.Registry().Methods {
		if m.OwnFormat != nil && !m.Vague && m.OwnFormat(file) { // the file may look like a state as well
			return inspection{File: name, Kind: "encrypted", Format: m.Name, info: encryption.Info{Kind: info.Kind}}, nil
		}
	}
	return found, err
}

// why returns the error from reading an unrecognized file as a state, as the end of a line. It returns an
// empty string if there is no error.
func why(file []byte) string {
	err := notState(file)
	if stranger, ok := errors.AsType[recognize.Stranger](err); ok {
		err = stranger
	} else if failed, ok := errors.AsType[*encryption.Error](err); ok {
		err = failed.Err
	}
	if err == nil {
		return ""
	}
	return ": " + outside.Line(words.Command{Name: "inspect"}.Text(err), maxWhy)
}

const maxWhy = 300 // in bytes

// text returns the inspection as text for users.
func (i inspection) text(name string, file []byte) string {
	text := name + ": " + strings.Join(strings.Fields(i.Kind+" "+i.Format+" "+i.Version), " ")
	if i.Kind == "unknown" {
		text += why(file)
	}
	if i.Serial != nil {
		text += fmt.Sprintf("\n  serial: %d", *i.Serial)
	}
	if i.Lineage != "" {
		text += "\n  lineage: " + outside.Line(i.Lineage, maxName)
	}
	for _, name := range i.KeyProviders {
		text += "\n  key provider: " + outside.Line(name, maxName)
	}
	if i.locked != "" {
		text += "\n  lock: " + i.locked
	}
	return text + "\n"
}

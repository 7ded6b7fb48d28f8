package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/overview"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
)

// The exit codes of diff with -exit-code, as those of diff(1) and git diff.
const (
	exitDiffers = 1
	exitTrouble = 2
)

// diff prints the differences between two states.
func (c *call) diff(ctx context.Context) error {
	switch {
	case !c.on("backend") && len(c.args) == 1:
		return usageError(c.miscounted().Error())
	case len(c.args) == 2 && c.args[0] == stdinName && c.args[1] == stdinName:
		return usageError("standard input can be only one of the two states; give the name of a file for the other state")
	}
	if err := c.checkAttributes(); err != nil {
		return err
	}
	differs, err := c.compare(ctx)
	switch {
	case err != nil && c.on("exit-code"):
		c.report(err)
		return exitStatus(exitTrouble)
	case err == nil && c.on("exit-code") && differs:
		return exitStatus(exitDiffers)
	}
	return err
}

// compare reads two states, prints the differences, and reports whether there are any.
func (c *call) compare(ctx context.Context) (differs bool, err error) {
	target, err := c.target(c.text("config"))
	if err != nil {
		return false, err
	}
	c.noteUnused()
	var states []*overview.State
	var files []overview.File
	read := func(ctx context.Context, name string, file []byte) error {
		state, from, err := c.overview(ctx, target, name, file)
		states, files = append(states, state), append(files, from)
		return err
	}
	if err := c.eachSide(ctx, target, read); err != nil {
		return false, err
	}
	v := overview.DiffView{Old: files[0], New: files[1], Values: c.on("values"), Attributes: c.attributes()}
	for i, state := range states {
		if err := closed(state, v.Values, v.Attributes, "remove -values and -attributes"); err != nil {
			return false, fmt.Errorf("%s: %w", shown(files[i].Name), err)
		}
	}
	d, err := overview.Compare(states[0], states[1])
	if err != nil {
		return false, err
	}
	v.Paint = func(colour, text string) string { return c.paint(c.stdout, colour, text) }
	write := d.WriteText
	if c.on("json") {
		write = d.WriteJSON
	}
	return !d.IsEmpty(), keyfile.Reason(write(c.stdout, v))
}

// eachSide calls read with the two states to compare: files, versions in the backend, and the state in the backend if
// only one is given.
func (c *call) eachSide(
	ctx context.Context, target encryption.Target, read func(ctx context.Context, name string, file []byte) error,
) error {
	args := slices.Clone(c.args)
	for _, arg := range args {
		var err error
		if c.on("backend") && !isFile(arg) {
			err = c.ofVersion(ctx, target, arg, read)
		} else if err = c.one(ctx, arg, read); err != nil {
			err = fmt.Errorf("%s: %w", shown(arg), err)
		}
		if err != nil {
			return err
		}
	}
	if len(args) == 1 {
		return c.fromBackend(ctx, target, read)
	}
	return nil
}

// fromBackend calls work with the file in the backend. The first signal cancels it, and the second ends the process.
func (c *call) fromBackend(
	ctx context.Context, target encryption.Target, work func(ctx context.Context, name string, file []byte) error,
) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	ctx, begun := c.begin(ctx, 1)
	file, err := c.lookInBackend(ctx, target)
	begun.stop()
	if err == nil {
		err = work(ctx, stateInBackend, file)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", stateInBackend, err)
	}
	return nil
}

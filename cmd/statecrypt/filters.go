package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
)

func (c *call) decrypt(ctx context.Context) error {
	switch {
	case c.on("backend") && len(c.args) > 0:
		return usageError("decrypt requires a file or -backend, but not both")
	case c.on("backend") && c.on("plan"):
		return usageError("a backend contains no plans; remove -plan")
	}
	if err := c.refuseTerminal(); err != nil {
		return err
	}
	target, err := c.target(c.text("config"))
	if err != nil {
		return err
	}
	work := func(ctx context.Context, name string, file []byte) error {
		opened, err := target.DecryptInPlace(ctx, file)
		if err != nil {
			return err
		}
		c.warn(name, opened)
		serial, lineage, _ := store.Label(opened.Data)
		if err := c.pins.Accept(serial, lineage); err != nil {
			return err
		}
		return c.write(ctx, result{data: opened.Data, plain: opened.Data, target: &target})
	}
	if c.on("backend") {
		c.noteUnused()
		return c.fromBackend(ctx, target, work)
	}
	return c.each(ctx, work)
}

func (c *call) encrypt(ctx context.Context) error {
	target, err := c.target(c.text("config"))
	if err == nil {
		err = refusePlaintext(target)
	}
	if err != nil {
		return err
	}
	c.noteDoubts()
	target.Prepare(ctx)
	return c.each(ctx, func(ctx context.Context, name string, file []byte) error {
		sealed, again, err := states.SealForOthers(ctx, target, file, file)
		if err == nil {
			if again != nil {
				file = again.Data
			}
			if err = c.write(ctx, result{data: sealed, plain: file, target: &target}); err == nil {
				c.noteOwnState()
			}
			return err
		}
		if found, _ := inspectFile(name, file); found.Kind == "encrypted" {
			err = fmt.Errorf("%w; to change the key or the method, use statecrypt rotate", err)
		}
		return err
	})
}

// noteOwnState prints a note if the output is terraform.tfstate, the file where Terraform keeps its state if
// there is no backend.
func (c *call) noteOwnState() {
	if !c.on("plan") && filepath.Base(c.text("o")) == "terraform.tfstate" {
		c.say(yellow, "note:", "Terraform can no longer read "+shown(c.text("o"))+", and OpenTofu can read it only with these settings; "+
			"run statecrypt decrypt to undo this. To run Terraform with an encrypted state, use statecrypt wrap")
	}
}

// each reads each file and calls work, even if an earlier file has failed. It returns exitFailure if any file
// failed.
func (c *call) each(ctx context.Context, work func(ctx context.Context, name string, file []byte) error) error {
	switch {
	case len(c.args) == 0 && isTerminal(c.stdin):
		return usageError(fmt.Sprintf("no file is given, and standard input is a terminal; see statecrypt %s -h", c.Name))
	case len(c.args) == 0:
		c.args = []string{stdinName}
	}
	c.noteUnused()
	var worst error
	for _, name := range c.args {
		if err := c.one(ctx, name, work); err != nil {
			c.report(fmt.Errorf("%s: %w", shown(name), err))
			worst = exitStatus(exitFailure)
		}
	}
	return worst
}

// one reads a file and calls work with its content. While the file is being read, a signal ends the process.
// Afterwards, the first signal cancels the work, and the second ends the process.
func (c *call) one(ctx context.Context, name string, work func(ctx context.Context, name string, file []byte) error) error {
	file, err := c.read(name)
	if err == nil && name == stdinName && len(file) == 0 && c.Name != "inspect" {
		err = c.emptyInput()
	}
	if err != nil {
		return err
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	c.progress("working on", len(file))
	defer c.clear()
	return work(ctx, name, file)
}

// emptyInput returns the error for an empty standard input.
func (c *call) emptyInput() error {
	if f, ok := c.stdin.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return errors.New("it is an empty file; to write to the input file, use -o instead of >, because the shell empties " +
				"the file before it is read")
		}
	}
	return errors.New("it is empty; check whether the program before the pipe failed, or give the name of a file")
}

// wrap runs terraform or tofu with a backend that encrypts. It returns the program's exit code.
func (c *call) wrap(ctx context.Context) error {
	options := c.wrapOptions
	if c.on("shim") {
		options = c.shimOptions
	}
	o, err := options()
	if err != nil {
		return err
	}
	collectOften()
	code, err := wrap.Run(ctx, o)
	if err != nil {
		c.report(err)
	}
	return exitStatus(code)
}

// collectOften makes Go's garbage collections more frequent, unless the user has set GOGC. Most of the heap of wrap
// consists of a few copies of the state, so collections take almost no time. The peak of memory is a third lower.
func collectOften() {
	const usual = 100
	if before := debug.SetGCPercent(usual / 4); before != usual {
		debug.SetGCPercent(before)
	}
}

func (c *call) wrapOptions() (o wrap.Options, err error) {
	enc, err := c.settings(c.text("config"))
	needsNone := c.Name == "wrap" && wrap.NeedsNoState(c.args, c.environ)
	if err == nil && !needsNone {
		err = c.check(enc, false)
	}
	if err == nil && !needsNone {
		_, err = found(enc.Plan())
	}
	if err != nil {
		return o, c.misplaced(c.withoutSettings(err, c.text("config")))
	}
	c.noteUnused()
	return wrap.Options{
		Where: states.Where{Backend: c.backend, Settings: c.text("config")},
		Keys:  states.Keys{State: enc.State(), Plan: enc.Plan(), Doubts: c.doubts},
		Wishes: wrap.Wishes{
			Force: c.on("force"), Accept: c.on("accept"), EncryptExisting: c.on("encrypt-existing"), Leave: c.on("leave"), Pins: c.pins,
		},
		Command: c.args, Environ: c.environ, Withhold: c.used,
		Stdin: c.stdin, Stdout: c.stdout, Stderr: c.stderr,
	}, nil
}

// recover writes a state that wrap could not write earlier.
func (c *call) recover(ctx context.Context) error {
	o, err := c.wrapOptions()
	if err != nil {
		return err
	}
	r := states.Recovery{Unlock: c.text("unlock"), Force: c.on("force")}
	if len(c.args) > 0 {
		r.File = c.args[0]
	}
	ctx, stop := untilSignal(ctx, syscall.SIGHUP) // a signal stops requests, so locks are released
	defer stop()
	if isTerminal(c.stdin) && isTerminal(c.stderr) {
		r.Ask = func(question string) bool { return c.ask(ctx, question) }
	}
	return wrap.Recover(ctx, o, r)
}

// ask reports whether the user answers yes.
func (c *call) ask(ctx context.Context, question string) bool {
	_, _ = fmt.Fprintln(c.stderr, outside.Text(question))
	_, _ = fmt.Fprint(c.stderr, "Answer yes or no: ")
	answer := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(c.stdin).ReadString('\n') // without an answer, text is empty, which means no
		answer <- text
	}()
	select {
	case text := <-answer:
		return strings.TrimSpace(text) == "yes"
	case <-ctx.Done():
		return false
	}
}

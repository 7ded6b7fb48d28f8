package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/words"
)

const (
	maxName   = 300      // the maximum size of a name in a message, in bytes
	largeFile = 50 << 20 // the size of a file, in bytes, above which progress is shown

	red, yellow, green = "31", "33", "32"
)

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// paint returns text in a colour if the stream is a terminal that supports colours.
func (c *call) paint(stream any, colour, text string) string {
	lookup := world.Lookup(c.environ)
	off, _ := lookup("NO_COLOR")
	kind, _ := lookup("TERM")
	if off != "" || kind == "dumb" || !isTerminal(stream) {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// progress shows that a large file is being processed, on a line that is later replaced.
func (c *call) progress(what string, size int) {
	c.printing.Lock()
	defer c.printing.Unlock()
	if size > largeFile && isTerminal(c.stderr) {
		c.unfinished = true
		fmt.Fprintf(c.stderr, "\r%s: %s %d MB\x1b[K", c.Name, what, size/1_000_000)
	}
}

// clear removes the progress line.
func (c *call) clear() {
	c.printing.Lock()
	defer c.printing.Unlock()
	c.clearLine()
}

func (c *call) clearLine() {
	if c.unfinished {
		c.unfinished = false
		fmt.Fprint(c.stderr, "\r\x1b[K")
	}
}

// refuseTerminal returns an error if secrets would be printed to a terminal, unless -force is set.
func (c *call) refuseTerminal() error {
	if c.toStdout() && !c.on("force") && isTerminal(c.stdout) {
		if !c.HasFlag("o") {
			return usageError("standard output is a terminal, and would show secrets; redirect the output. To show the secrets, add -force")
		}
		return usageError("standard output is a terminal, and would show secrets; use -o FILE, or redirect the output. To show the " +
			"secrets, add -force")
	}
	return nil
}

// shown returns a file name in the form that messages show.
func shown(name string) string {
	switch {
	case name == stdinName:
		return "standard input"
	case recognize.IsContent(name):
		return "the argument"
	}
	return outside.Line(keyfile.Argument(name), maxName)
}

// shown returns the name of a file, or of a state that a store has listed, in the form that messages show.
func (c *call) shown(name string) string {
	if c.isGiven("prefix") {
		return outside.Line(name, maxName)
	}
	return shown(name)
}

// say prints a line about the run. It escapes the text, which may contain untrusted input.
func (c *call) say(colour, what, text string) {
	c.printing.Lock()
	defer c.printing.Unlock()
	c.clearLine()
	fmt.Fprintf(c.stderr, "%s %s\n", c.paint(c.stderr, colour, what), outside.Text(fault.Name(text, c.settingsFile())))
}

// settingsFile returns the name of the settings that the user gave last, or an empty string.
func (c *call) settingsFile() string { return cmp.Or(c.text("to"), c.text("config"), c.text("from")) }

// sayOfStore prints a message about a store. Several states may be processed at the same time.
func (c *call) sayOfStore(text string) {
	c.printing.Lock()
	defer c.printing.Unlock()
	c.clearLine()
	states.Notes(c.stderr, c.settingsFile())(text)
}

// report prints an error, worded for the user of this command.
func (c *call) report(err error) {
	if c.Name != "wrap" { // which may have more to tell
		err = asInterrupted(err)
	}
	if errors.Is(err, errInterrupted) {
		err = fault.With(err, "run it again")
	}
	c.say(red, "error:", c.audience().Text(err)+c.emptied(err))
}

// audience returns the wording for the user of this command.
func (c *call) audience() words.Command {
	isVar := func(arg string) bool {
		return strings.HasPrefix(strings.TrimLeft(arg, "-"), "var") && strings.HasPrefix(arg, "-")
	}
	return words.Command{
		Name: c.Name, Settings: c.settingsFile(), HasPlan: c.HasFlag("plan"), Plan: c.on("plan"), Backend: c.on("backend"),
		VarBehind: c.Name == "wrap" && slices.ContainsFunc(c.args, isVar),
	}
}

// warn prints the warnings about a file that was opened.
func (c *call) warn(name string, opened *encryption.Opened) {
	for _, w := range opened.Warnings {
		c.say(yellow, "warning:", fmt.Sprintf("%s: opened with %s", shown(name), w.Text))
	}
	if !opened.UsedFallback {
		return
	}
	text := fmt.Sprintf("%s was opened by the fallback %s", shown(name), opened.Method)
	if !opened.Encrypted {
		text = fmt.Sprintf("%s is not encrypted; the fallback %s allows that", shown(name), opened.Method)
	}
	for _, a := range opened.Attempts {
		text += fmt.Sprintf("\n  - %s: %v", a.Method, a.Err)
	}
	c.say(yellow, "warning:", text)
}

package main

import (
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/syntax"
)

// What the program ends with.
const (
	exitFailure  = 1 // a file does not open, or the settings are wrong
	exitUsage    = 2
	exitFallback = 3 // verify: every file opens, and one only by a fallback
)

//go:embed text
var texts embed.FS // the help of each command, and the completion for each shell

// command is a row in the table of commands.
type command struct {
	name     string
	min, max int    // how many arguments
	flags    string // as in [call.flagSet]
	program  bool   // its arguments are another program, so flags end at the first
	run      func(*call, context.Context) error
}

const many = 1 << 30

func commands() []command {
	return []command{
		{name: "inspect", max: many, flags: "json", run: (*call).inspect},
		{name: "decrypt", max: 1, flags: "config plan o force", run: (*call).decrypt},
		{name: "encrypt", max: 1, flags: "config plan o", run: (*call).encrypt},
		{name: "verify", min: 1, max: many, flags: "config plan", run: (*call).verify},
		{name: "outputs", max: 1, flags: "only sensitive o force", run: (*call).outputs},
		{name: "wrap", min: 1, max: many, flags: "config force encrypt-existing leave lineage minimum-serial", program: true, run: (*call).wrap},
		{name: "completion", min: 1, max: 1, run: (*call).completion},
	}
}

// call is one call of the program.
type call struct {
	command
	args           []string // without flags
	stdin          io.Reader
	stdout, stderr io.Writer
	environ        []string

	config, only, output         string
	lineage                      string
	minimumSerial                uint64
	force, json, plan, sensitive bool
	encryptExisting, leave       bool

	used       []string    // variables of the environment that -config uses
	backend    *attr.Entry // the block of -config; nil if there is none
	unfinished bool        // a line of progress is on the terminal
}

// flagSet has the flags of the command.
func (c *call) flagSet() *flag.FlagSet {
	texts := map[string]*string{"config": &c.config, "only": &c.only, "o": &c.output, "lineage": &c.lineage}
	switches := map[string]*bool{
		"force": &c.force, "json": &c.json, "plan": &c.plan, "sensitive": &c.sensitive,
		"encrypt-existing": &c.encryptExisting, "leave": &c.leave,
	}
	flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	for name := range strings.FieldsSeq(c.flags) {
		switch text, ok := texts[name]; {
		case ok:
			flags.StringVar(text, name, "", "")
		case name == "minimum-serial":
			flags.Uint64Var(&c.minimumSerial, name, 0, "")
		default:
			flags.BoolVar(switches[name], name, false, "")
		}
	}
	return flags
}

// parse reads flags before, between and after the arguments.
func (c *call) parse(args []string) error {
	for flags := c.flagSet(); ; {
		if err := flags.Parse(args); err != nil {
			return err
		}
		rest := flags.Args()
		parsed := args[:len(args)-len(rest)]
		if c.program || len(rest) == 0 || len(parsed) > 0 && parsed[len(parsed)-1] == "--" {
			c.args = append(c.args, rest...)
			return nil
		}
		c.args, args = append(c.args, rest[0]), rest[1:]
	}
}

// usageError is a mistake in how the program was called.
type usageError string

func (e usageError) Error() string { return string(e) }

// exitStatus ends the program. The message has already been printed.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// run does what args say and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, environ []string) int {
	c := &call{stdin: stdin, stdout: stdout, stderr: stderr, environ: environ}
	err := c.dispatch(ctx, args)
	if status, ok := errors.AsType[exitStatus](err); ok || err == nil {
		return int(status)
	}
	c.report(err)
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	return exitFailure
}

func (c *call) dispatch(ctx context.Context, args []string) error {
	switch {
	case len(args) == 0:
		return errors.Join(c.print(c.stderr, "statecrypt.txt"), exitStatus(exitUsage))
	case args[0] == "help" && len(args) > 1:
		args = []string{args[1], "-h"}
	case slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]):
		return c.print(c.stdout, "statecrypt.txt")
	case args[0] == "-version" || args[0] == "--version":
		_, err := fmt.Fprintln(c.stdout, "statecrypt", version)
		return err
	}
	if err := c.find(args[0]); err != nil {
		return err
	}
	err := c.parse(args[1:])
	if n := len(c.args); err == nil && (n < c.min || n > c.max) {
		err = fmt.Errorf("the wrong number of arguments: %d", n)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		return c.print(c.stdout, c.name+".txt")
	case err != nil:
		return usageError(fmt.Sprintf("%v; see statecrypt %s -h", err, c.name))
	}
	return c.run(c, ctx)
}

// find sets the command to that called name.
func (c *call) find(name string) error {
	var names []string
	for _, c.command = range commands() {
		if c.name == name {
			return nil
		}
		names = append(names, c.name)
	}
	return usageError(fmt.Sprintf("there is no command %q; see statecrypt -h%s", name, syntax.Suggest(name, names)))
}

// print prints one of the texts.
func (c *call) print(w io.Writer, name string) error {
	text, err := texts.ReadFile("text/" + name)
	if err == nil {
		_, err = w.Write(text)
	}
	return err
}

func (c *call) completion(context.Context) error {
	if c.print(c.stdout, "completion."+c.args[0]) != nil {
		return usageError(fmt.Sprintf("there is no completion for %q; see statecrypt completion -h", c.args[0]))
	}
	return nil
}

package main

import (
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/cli"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/notice"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/words"
)

// These are the exit codes of the program.
const (
	exitFailure  = 1 // a file does not open, or the settings are wrong
	exitUsage    = 2
	exitFallback = 3 // verify: every file opens, and one only by a fallback
)

//go:embed text
var texts embed.FS // the help of each command, and the completion for each shell

// command is a row in the table of commands. Its flags are as in [call.flagSet].
type command = cli.Command[action]

type action func(*call, context.Context) error

func commands() cli.Table[action] {
	const oneFile = "one file, or none for standard input"
	return cli.Table[action]{
		{Name: "inspect", Wants: "files, or none for standard input", Max: cli.Many, Does: (*call).inspect,
			Flags: "config backend prefix var var-file json"},
		{Name: "decrypt", Wants: oneFile, Max: 1, Does: (*call).decrypt,
			Flags: "config var var-file lineage minimum-serial plan o force"},
		{Name: "encrypt", Wants: oneFile, Max: 1, Flags: "config var var-file plan o", Does: (*call).encrypt},
		{Name: "verify", Wants: "at least one file, or -backend and no file", Max: cli.Many, Does: (*call).verify,
			Flags: "config backend var var-file lineage minimum-serial plan json"},
		{Name: "rotate", Wants: "at least one file, or -backend and no file", Max: cli.Many, Does: (*call).rotate,
			Flags: "from to again separate backend prefix var var-file plan json"},
		{Name: "outputs", Wants: oneFile, Max: 1, Flags: "only sensitive o force", Does: (*call).outputs},
		{Name: "wrap", Wants: "a program and its arguments", Min: 1, Max: cli.Many, Does: (*call).wrap,
			Flags: "config var var-file force accept encrypt-existing leave lineage minimum-serial"},
		{Name: "recover", Wants: "one file, or none for what the run in this module has left", Max: 1, Does: (*call).recover,
			Flags: "config var var-file unlock force"},
		{Name: "key-provider", Wants: "the name of a key provider: age", Min: 1, Max: 1, Flags: "r R i", Does: (*call).keyProvider},
		{Name: "completion", Wants: "the name of a shell: bash, zsh or fish", Min: 1, Max: 1, Does: (*call).completion},
		{Name: "version", Wants: "no arguments", Does: (*call).version},
	}
}

// call is one call of the program.
type call struct {
	command
	args           []string // without flags
	stdin          io.Reader
	stdout, stderr io.Writer
	environ        []string
	registry       func() encryption.Registry // one, so that all settings share the keys that are derived

	config, from, to             string
	output                       string
	only                         []string
	given                        []given // -var and -var-file, in their order
	recipients, recipientFiles   []string
	identities                   []string // files
	pins                         states.Pins
	mistake                      error // in the value of a flag
	force, json, plan, sensitive bool
	accept                       bool
	encryptExisting, leave       bool
	configInVariable             bool // and not in a flag
	inBackend, again, separate   bool
	prefix                       *string // of states; nil for the prefix in the block
	unlock                       string  // the ID of a lock

	used    []string             // variables of the environment that -config uses
	noted   []setIn              // settings whose places were shown
	backend *unstable.Entry      // the block of -config; nil if there is none
	doubts  []encryption.Finding // probable mistakes in the key that encrypts

	printing   sync.Mutex // on stderr, where plugins of keys may speak at any time
	unfinished bool       // a line of progress is on the terminal
}

// flagSet has the flags of the command.
func (c *call) flagSet() *flag.FlagSet {
	texts := map[string]*string{"config": &c.config, "from": &c.from, "to": &c.to}
	switches := map[string]*bool{
		"force": &c.force, "json": &c.json, "plan": &c.plan, "sensitive": &c.sensitive,
		"accept": &c.accept, "encrypt-existing": &c.encryptExisting, "leave": &c.leave, "backend": &c.inBackend, "again": &c.again,
		"separate": &c.separate,
	}
	flags := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	for name := range strings.FieldsSeq(c.Flags) {
		text, isText := texts[name]
		toggle, isSwitch := switches[name]
		switch {
		case isText:
			flags.Func(name, "", func(given string) error {
				c.checkValue(name, given)
				if given == stdinName {
					c.mistake = errors.Join(c.mistake, fmt.Errorf("-%s requires the name of a file; standard input is for states and plans", name))
				}
				if *text != "" {
					c.mistake = errors.Join(c.mistake, fmt.Errorf("-%s is given twice; give it once", name))
				}
				if *text = given; given == "" {
					c.mistake = errors.Join(c.mistake, fmt.Errorf("-%s is empty; is a variable empty?", name))
				}
				return nil
			})
		case isSwitch:
			flags.BoolVar(toggle, name, false, "")
		default:
			flags.Func(name, "", func(text string) error {
				c.checkValue(name, text)
				c.add(name, text)
				return nil
			})
		}
	}
	return flags
}

// add sets a flag that is more than a text or a switch. It keeps a mistake for later, because errors of
// package flag repeat the text, which may be a secret.
func (c *call) add(name, text string) {
	switch name {
	case "var", "var-file":
		c.given = append(c.given, given{text, name == "var-file"})
	case "only":
		for name := range strings.SplitSeq(text, ",") {
			if name = strings.TrimSpace(name); name == "" {
				c.mistake = errors.Join(c.mistake, errors.New("a name in -only is empty; is a variable empty, or does a space follow a comma?"))
			}
			c.only = append(c.only, name)
		}
	case "prefix":
		c.prefix = &text
	case "unlock":
		if c.unlock = text; text == "" {
			c.mistake = errors.Join(c.mistake, errors.New("-unlock requires the ID of a lock; leave it out to be told who has the lock"))
		}
	case "r":
		c.recipients = append(c.recipients, text)
	case "R":
		c.recipientFiles = append(c.recipientFiles, text)
	case "i":
		c.identities = append(c.identities, text)
	case "lineage", "minimum-serial":
		c.mistake = errors.Join(c.mistake, c.pin(name, text))
	case "o":
		switch c.output = text; {
		case text == "":
			c.mistake = errors.Join(c.mistake, errors.New("-o requires the name of a file; is a variable empty?"))
		case recognize.Scheme(text) != "", recognize.IsOfWindows(text):
			c.mistake = errors.Join(c.mistake, fmt.Errorf("-o requires the path of a file, and %s is an address, or a path of another system",
				shown(text)))
		}
	}
}

// pin reads a flag that says which state it has to be.
func (c *call) pin(name, text string) error {
	if name == "lineage" {
		if c.pins.Lineage = text; text == "" {
			return errors.New("-lineage must not be empty; leave it out to accept any")
		}
		return nil
	}
	serial, err := strconv.ParseInt(text, 10, 64)
	if c.pins.Serial = &serial; err != nil || serial < 0 {
		return errors.New("-minimum-serial must be a whole number, and not negative")
	}
	return nil
}

// parse reads flags before, between and after the arguments.
func (c *call) parse(args []string) error {
	for flags := c.flagSet(); ; {
		if err := flags.Parse(args); err != nil {
			return c.named(err)
		}
		rest := flags.Args()
		parsed := args[:len(args)-len(rest)]
		if c.Name == "wrap" || len(rest) == 0 || len(parsed) > 0 && parsed[len(parsed)-1] == "--" {
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

// run executes the command in args and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, environ []string) int {
	c := &call{stdin: stdin, stdout: stdout, stderr: stderr, environ: environ, registry: sync.OnceValue(builtin.Registry)}
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
	case slices.Contains([]string{"-v", "-version", "--version"}, args[0]):
		return c.version(ctx)
	}
	known, ok := commands().Find(args[0])
	if c.command = known; !ok {
		return usageError(noCommand(args[0], commands().Names()))
	}
	switch err := c.understand(args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		return c.print(c.stdout, c.Name+".txt")
	case err != nil:
		return usageError(words.Usage(err, c.Name))
	}
	return c.Does(c, notice.With(ctx, func(text string) { c.say(yellow, "note:", text) }))
}

// understand parses the arguments after the name of the command.
func (c *call) understand(args []string) error {
	err := c.parse(args)
	if c.HasFlag("config") && c.config == "" {
		c.config, _ = world.Lookup(c.environ)("STATECRYPT_CONFIG")
		c.configInVariable = c.config != ""
	}
	n := len(c.args)
	switch {
	case err != nil:
		return err
	case n > c.Max && slices.ContainsFunc(c.given, func(v given) bool { return !v.isFile && !strings.Contains(v.text, "=") }):
		return errors.New("-var requires NAME=VALUE in one word, without spaces beside the =, such as -var 'passphrase=…'")
	case c.mistake == nil && c.from != "" && c.from == c.to:
		return errors.New("-from and -to name the same settings; the new key is in others (-again -to FILE, without -from, makes a new data key)")
	case c.mistake == nil && (n < c.Min || n > c.Max):
		return c.miscounted()
	case c.mistake == nil && c.prefix != nil && !c.inBackend:
		return errors.New("-prefix is for the states in the backend: -backend -prefix PREFIX; files are named")
	case c.mistake == nil && c.plan && c.pins != (states.Pins{}):
		return errors.New("a plan has no serial and no lineage that could be pinned; leave out -plan, or what pins them")
	}
	return c.mistake
}

// print prints one of the texts.
func (c *call) print(w io.Writer, name string) error {
	text, err := texts.ReadFile("text/" + name)
	if err == nil {
		_, err = w.Write(text)
	}
	return err
}

func (c *call) version(context.Context) error {
	_, err := fmt.Fprintln(c.stdout, "statecrypt", version)
	return keyfile.Reason(err)
}

func (c *call) completion(context.Context) error {
	script, err := texts.ReadFile("text/completion." + c.args[0])
	if errors.Is(err, fs.ErrNotExist) {
		return usageError(fmt.Sprintf("there is no completion for %s; %s requires %s", shown(c.args[0]), c.Name, c.Wants))
	}
	if err == nil {
		_, err = io.WriteString(c.stdout, completed(string(script)))
	}
	return keyfile.Reason(err)
}

// completed fills a script with the commands. A line with COMMAND is repeated for each command that has flags, and one
// with FLAG for each flag.
func completed(script string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(script, "COMMANDS", strings.Join(commands().Names(), " "))) {
		if !strings.Contains(line, "COMMAND") {
			b.WriteString(line)
			continue
		}
		for _, c := range commands() {
			flags := c.FlagNames()
			if len(flags) > 0 && !strings.Contains(line, "FLAGS") {
				for _, name := range flags {
					b.WriteString(strings.NewReplacer("COMMAND", c.Name, "FLAG", forFish(c, name)).Replace(line))
				}
			} else if len(flags) > 0 {
				b.WriteString(strings.NewReplacer("COMMAND", c.Name, "FLAGS", "-"+strings.Join(flags, " -")).Replace(line))
			}
		}
	}
	return b.String()
}

// forFish describes a flag to fish: a file, another value or nothing follows it, as in the help of the command.
func forFish(c command, name string) string {
	help, _ := texts.ReadFile("text/" + c.Name + ".txt") // of each command
	_, row, _ := strings.Cut(string(help), "\n  -"+name+" ")
	option := "-o " + name
	if len(name) == 1 {
		option = "-s " + name
	}
	switch {
	case strings.HasPrefix(row, "FILE"):
		return option + " -r"
	case strings.HasPrefix(row, " "):
		return option
	}
	return option + " -x"
}

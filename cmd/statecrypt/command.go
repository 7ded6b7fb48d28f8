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

	"golang.org/x/sync/semaphore"

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

// The exit codes of the program.
const (
	exitFailure  = 1 // a file cannot be opened, or the settings are wrong
	exitUsage    = 2
	exitFallback = 3 // verify: all files can be opened, but at least one only with a fallback
)

//go:embed text
var texts embed.FS // the help texts of all commands, and the completion scripts for all shells

// command is a row in the table of commands. Its flags are taken from its help text.
type command = cli.Command[action]

type action func(*call, context.Context) error

func commands() cli.Table[action] {
	const oneFile = "one file or standard input"
	all := cli.Table[action]{
		{Name: "inspect", Wants: "files or standard input", Max: cli.Many, Does: (*call).inspect},
		{Name: "decrypt", Wants: oneFile, Max: 1, Does: (*call).decrypt},
		{Name: "encrypt", Wants: oneFile, Max: 1, Does: (*call).encrypt},
		{Name: "verify", Wants: "at least one file, or -backend without files", Max: cli.Many, Does: (*call).verify},
		{Name: "rotate", Wants: "at least one file, or -backend without files", Max: cli.Many, Does: (*call).rotate},
		{Name: "outputs", Wants: oneFile, Max: 1, Does: (*call).outputs},
		{Name: "show", Wants: oneFile, Max: 1, Does: (*call).show},
		{Name: "diff", Wants: "two files, or -backend and one or two files or versions", Min: 1, Max: 2, Does: (*call).diff},
		{Name: "history", Wants: "no arguments", Does: (*call).history},
		{Name: "restore", Wants: "a version or a file", Min: 1, Max: 1, Does: (*call).restore},
		{Name: "wrap", Wants: "a program and its arguments", Min: 1, Max: cli.Many, Does: (*call).wrap},
		{Name: "shim", Wants: "a folder, and terraform or tofu", Min: 1, Max: 2, Does: (*call).shim},
		{Name: "recover", Wants: "at most one file", Max: 1, Does: (*call).recover},
		{Name: "key-provider", Wants: "the name of a key provider (age)", Min: 1, Max: 1, Does: (*call).keyProvider},
		{Name: "completion", Wants: "the name of a shell (bash, zsh, fish or powershell)", Min: 1, Max: 1, Does: (*call).completion},
		{Name: "version", Wants: "no arguments", Does: (*call).version},
	}
	for i := range all {
		all[i].Flags = flagsIn(all[i].Name + ".txt")
	}
	return all
}

// flagsIn returns the flags in a help text, in the form that [cli.Command] uses. A row that explains a flag
// begins with two spaces and a dash. Two spaces follow the flag and its value.
func flagsIn(help string) string {
	var flags []string
	text, _ := texts.ReadFile("text/" + help) // every command has a help text
	for line := range strings.Lines(string(text)) {
		if row, ok := strings.CutPrefix(line, "  -"); ok {
			flag, _, _ := strings.Cut(row, "  ")
			flags = append(flags, strings.Replace(flag, " ", "=", 1))
		}
	}
	return strings.Join(flags, " ")
}

// call is one run of the program.
type call struct {
	command
	args           []string // the arguments without the flags
	stdin          io.Reader
	stdout, stderr io.Writer
	environ        []string
	registry       func() encryption.Registry // always returns the same registry; all settings share derived keys

	flags            map[string][]string // values by flag name; "true" for a switch that is on
	given            []given             // the values of -var and -var-file, in order
	pins             states.Pins         // the values of -lineage and -minimum-serial
	mistake          error               // mistakes in flag values
	configInVariable bool                // whether STATECRYPT_CONFIG is used, because -config is not set

	used    []string             // the environment variables that -config uses
	noted   []setIn              // variables, and the files that set them, that were already reported
	backend *unstable.Entry      // the backend block in -config; nil if there is none
	doubts  []encryption.Finding // probable mistakes in the key used to encrypt

	memory *semaphore.Weighted // the room for files that are processed at the same time, in bytes

	tells      bool       // whether long work says how far it is
	printing   sync.Mutex // guards stderr, where key plugins may print at any time
	unfinished bool       // whether the terminal shows an unfinished progress line
}

// on reports whether a switch is on.
func (c *call) on(flag string) bool { return c.text(flag) == "true" }

// text returns the last value of a flag, or an empty string if the flag is not set.
func (c *call) text(flag string) string {
	if !c.isGiven(flag) {
		return ""
	}
	return c.flags[flag][len(c.flags[flag])-1]
}

// isGiven reports whether a flag is set, even to an empty value.
func (c *call) isGiven(flag string) bool { return len(c.flags[flag]) > 0 }

// flagSet returns the command's flags. It does not report mistakes in values immediately, because errors from
// package flag repeat the value, which may be a secret.
func (c *call) flagSet() *flag.FlagSet {
	c.flags = map[string][]string{}
	flags := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	for _, name := range c.FlagNames() {
		if !c.TakesValue(name) {
			flags.BoolFunc(name, "", func(text string) error {
				on, err := strconv.ParseBool(text)
				c.flags[name] = append(c.flags[name], strconv.FormatBool(on))
				return err
			})
			continue
		}
		flags.Func(name, "", func(text string) error {
			c.mistake = errors.Join(c.mistake, c.checkValue(name, text), c.add(name, text))
			c.flags[name] = append(c.flags[name], text)
			return nil
		})
	}
	return flags
}

// add checks the value of a flag. It also stores the values of -var, -var-file, -lineage and -minimum-serial.
func (c *call) add(name, text string) (err error) {
	switch name {
	case "config", "from", "to":
		if text == stdinName {
			err = fmt.Errorf("-%s cannot read standard input; give the name of a file", name)
		}
		if c.text(name) != "" {
			err = errors.Join(err, fmt.Errorf("-%s is given twice; use it only once", name))
		}
		if text == "" {
			err = errors.Join(err, fmt.Errorf("the value of -%s is empty; check whether a variable is empty", name))
		}
	case "var", "var-file":
		c.given = append(c.given, given{text, name == "var-file"})
	case "only":
		if slices.Contains(namesIn(text), "") {
			err = errors.New("a name in -only is empty; check for an empty variable, or a space after a comma")
		}
	case "unlock":
		if text == "" {
			err = errors.New("the value of -unlock is empty; give the lock ID. To see who holds the lock, remove -unlock")
		}
	case "n":
		if n, wrong := strconv.Atoi(text); wrong != nil || n < 1 || n > maxVersions {
			err = fmt.Errorf("-n requires a whole number from 1 to %d", maxVersions)
		}
	case "lineage":
		if c.pins.Lineage = text; text == "" {
			err = errors.New("the value of -lineage is empty; to accept any lineage, remove -lineage")
		}
	case "minimum-serial":
		serial, wrong := strconv.ParseInt(text, 10, 64)
		if c.pins.Serial = &serial; wrong != nil || serial < 0 {
			err = errors.New("the value of -minimum-serial is not a whole number, or is negative")
		}
	case "o":
		switch {
		case text == "":
			err = errors.New("the value of -o is empty; check whether a variable is empty")
		case recognize.Scheme(text) != "", recognize.IsOfWindows(text):
			err = fmt.Errorf("-o requires a file path, but %s is an address or a path of another system", shown(text))
		}
	}
	return err
}

// parse parses flags before, between and after the arguments.
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

// usageError is a mistake in the command line.
type usageError string

func (e usageError) Error() string { return string(e) }

// exitStatus is an error that only sets the exit code. Its message has already been printed.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

func newCall(stdin io.Reader, stdout, stderr io.Writer, environ []string) *call {
	return &call{
		stdin: stdin, stdout: stdout, stderr: stderr, environ: environ, registry: sync.OnceValue(builtin.Registry),
		flags: map[string][]string{},
	}
}

// run runs the command in args and returns the exit code.
func (c *call) run(ctx context.Context, args []string) int {
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

// understand parses the arguments after the command name.
func (c *call) understand(args []string) error {
	err := c.parse(args)
	if c.HasFlag("config") && c.text("config") == "" {
		config, _ := world.Lookup(c.environ)("STATECRYPT_CONFIG")
		c.flags["config"], c.configInVariable = []string{config}, config != ""
	}
	n := len(c.args)
	switch {
	case err != nil:
		return err
	case n > c.Max && slices.ContainsFunc(c.given, func(v given) bool { return !v.isFile && !strings.Contains(v.text, "=") }):
		return errors.New("a -var does not have the form NAME=VALUE; write it without spaces around the =, for example -var 'passphrase=…'")
	case c.mistake == nil && c.text("from") != "" && c.text("from") == c.text("to"):
		return errors.New("-from and -to name the same settings; give -to the settings with the new key. For a new data key, use " +
			"-again -to FILE without -from")
	case c.mistake == nil && (n < c.Min || n > c.Max):
		return c.miscounted()
	case c.mistake == nil && c.isGiven("prefix") && !c.on("backend"):
		return errors.New("-prefix works only with -backend; give the names of files without a flag")
	case c.mistake == nil && c.on("plan") && c.pins != (states.Pins{}):
		return errors.New("a plan has no serial or lineage to compare; remove -plan, or remove -lineage and -minimum-serial")
	}
	return c.mistake
}

// print prints an embedded text.
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
	name := "completion." + c.args[0]
	if c.args[0] == "powershell" || c.args[0] == "pwsh" { // its program
		name = "completion.ps1"
	}
	script, err := texts.ReadFile("text/" + name)
	if errors.Is(err, fs.ErrNotExist) {
		return usageError(fmt.Sprintf("there is no completion for %s; the command %s requires %s", shown(c.args[0]), c.Name, c.Wants))
	}
	if err == nil {
		_, err = io.WriteString(c.stdout, completed(string(script)))
	}
	return keyfile.Reason(err)
}

// completed returns a completion script with the commands filled in. It repeats a line that contains COMMAND
// for each command that has flags, and a line that contains FLAG for each of the command's flags.
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

// forFish returns the options that tell fish whether a flag is followed by a file, by another value or by
// nothing.
func forFish(c command, name string) string {
	option := "-o " + name
	if len(name) == 1 {
		option = "-s " + name
	}
	switch value, takes := c.Value(name); {
	case strings.HasPrefix(value, "FILE"):
		return option + " -r"
	case takes:
		return option + " -x"
	}
	return option
}

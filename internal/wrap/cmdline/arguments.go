// Package cmdline parses Terraform and OpenTofu command lines, and refuses command lines with unknown parts.
package cmdline

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/files"
)

// NoWorkspaces is the error message about workspaces. It names the alternative.
const NoWorkspaces = "wrap does not support workspaces; give each state its own address in the backend block of a -config file"

// Line is a parsed terraform or tofu command line. The child gets the result of [Line.Arguments], which is rebuilt from
// the parsed line, because the child might parse the original text differently.
type Line struct {
	Command
	Written []string // all words as the user wrote them
	Program string   // the full path of the program
	Dir     string   // the absolute working directory of the program, with links resolved
	Data    string   // the absolute data directory that the program would use without wrap
	Flags   []flag
	Args    []string
	Help    bool // whether the user only asks for help
}

// flag is a flag of the command line.
type flag struct {
	Name, Value string
	hasValue    bool
}

func (f flag) String() string {
	if !f.hasValue {
		return "-" + f.Name
	}
	return "-" + f.Name + "=" + f.Value
}

// Read parses a command line of the form [-chdir=DIR] SUBCOMMAND [-flag[=value]…] [argument…]. It accepts the migration
// flags only if leaves is true.
func Read(words, environ []string, leaves bool) (*Line, error) {
	program, err := Program(words)
	if err != nil {
		return nil, err
	}
	l := &Line{Written: words, Program: program}
	lookup := world.Lookup(environ)
	if words, err = l.locateFolders(words[1:], lookup); err != nil {
		return nil, err
	}
	if words, err = l.subcommand(words); err != nil {
		return nil, err
	}
	if leaves {
		l.Command.Flags += " migrate-state force-copy"
	}
	more, err := l.words(lookup)
	if err != nil {
		return nil, err
	}
	err = l.parse(append(more, words...))
	if err != nil && len(more) > 0 {
		err = fmt.Errorf("%w. Also check the arguments in TF_CLI_ARGS and TF_CLI_ARGS_%s", err, strings.ReplaceAll(l.Name, " ", "_"))
	}
	return l, err
}

// Here returns the Line for one of wrap's own commands, which works in the current folder.
func Here(name string, environ []string) (*Line, error) {
	l := &Line{Command: Command{Name: name}}
	_, err := l.locateFolders(nil, world.Lookup(environ))
	return l, err
}

func (l *Line) locateFolders(words []string, lookup func(string) (string, bool)) (rest []string, err error) {
	at := "."
	if len(words) > 0 && strings.HasPrefix(words[0], "-chdir=") {
		at, words = strings.TrimPrefix(words[0], "-chdir="), words[1:]
	}
	if l.Dir, err = files.Resolve("", at); err != nil {
		return nil, fmt.Errorf("the folder %s: %w", outside.Quoted(at, 300), keyfile.Explain(at, err))
	}
	data, _ := lookup("TF_DATA_DIR")
	if strings.HasPrefix(data, files.OwnFolder+"/") { // set by an outer run of wrap, which started this one
		data = ""
	}
	l.Data = files.Join(l.Dir, cmp.Or(data, ".terraform"))
	if data, err := files.Resolve("", l.Data); err == nil { // the directory exists
		l.Data = data
	}
	return words, nil
}

// subcommand finds the command, which is one or two words long, and returns the words after it.
func (l *Line) subcommand(words []string) (rest []string, err error) {
	if len(words) == 1 && slices.Contains([]string{"-help", "--help", "-h", "-version", "--version", "-v"}, words[0]) {
		l.Flags = []flag{{Name: strings.TrimLeft(words[0], "-")}}
		l.Help = true
		return nil, nil
	}
	switch {
	case len(words) == 0 || words[0] == "":
		return nil, errors.New("the subcommand is missing; add a subcommand, for example plan")
	case words[0][0] == '-':
		return nil, fmt.Errorf("the flag %s comes before the subcommand, but only -chdir=DIR can; put flags of the program after the "+
			"subcommand, and flags of wrap before the program", Shown(words[0], nil))
	}
	for n := min(2, len(words)); n > 0; n-- {
		name := strings.Join(words[:n], " ")
		if known, ok := commands().Find(name); ok && strings.Count(name, " ") == n-1 {
			l.Command = known
			return words[n:], nil
		}
	}
	var names []string
	for _, name := range commands().Names() {
		names = append(names, strings.Fields(name)[0], name)
	}
	isFlag := func(word string) bool { return strings.HasPrefix(word, "-") }
	if end := slices.IndexFunc(words, isFlag); end > 0 {
		words = words[:end]
	}
	written := strings.Join(words[:min(2, len(words))], " ")
	if why := cmp.Or(refusedCommands()[written], refusedCommands()[words[0]]); why != "" {
		return nil, fmt.Errorf("the subcommand %s is refused: %s", outside.Quoted(written, 100), why)
	}
	near := syntax.Suggest(written, names)
	if more := subcommands(written); len(more) > 0 {
		return nil, fmt.Errorf("the subcommand %s is incomplete; use one of: %s", written, strings.Join(more, ", "))
	}
	if near == "" {
		if more := subcommands(words[0]); len(more) > 0 {
			near = "; use one of: " + strings.Join(more, ", ")
		} else {
			near = syntax.Suggest(words[0], names)
		}
	}
	return nil, fmt.Errorf("the subcommand %s is refused, because wrap does not know how the subcommand uses the state%s",
		outside.Quoted(written, 100), cmp.Or(near, "; if the subcommand does not use the state, run it without wrap"))
}

// words returns the words of the TF_CLI_ARGS variables in the order in which Terraform inserts them after the
// subcommand: the variable for the subcommand comes first. The child does not get the variables.
func (l *Line) words(lookup func(string) (string, bool)) (words []string, err error) {
	if l.Name == "" {
		return nil, nil
	}
	for _, variable := range []string{"TF_CLI_ARGS_" + strings.NewReplacer("-", "_", " ", "_").Replace(l.Name), "TF_CLI_ARGS"} {
		text, _ := lookup(variable)
		if !plainText.MatchString(text) {
			return nil, fmt.Errorf("%s is refused: it contains characters other than letters, digits, spaces and - _ . , : / = + @ %% ~ [ ]; "+
				"write such arguments on the command line", variable)
		}
		words = append(words, strings.Fields(text)...)
	}
	return words, nil
}

// plainText matches text that every parser splits into the same words.
var plainText = lazyregexp.New(`^[\w\-.,:/=+@%~\[\] \t\r\n]*$`)

// parse parses flags until the first argument, like the Go package flag.
func (l *Line) parse(words []string) error {
	for len(words) > 0 && len(words[0]) > 1 && words[0][0] == '-' {
		written, value, hasValue := strings.Cut(words[0], "=")
		name := strings.TrimPrefix(written[1:], "-")
		words = words[1:]
		takes := l.Command.TakesValue(name)
		switch {
		case !l.Command.HasFlag(name):
			return l.refuse(written, l.Command.Meant(name, refused()))
		case hasValue && isHelp(name): // Terraform or OpenTofu may not recognize this as help
			return l.refuse(written, "it takes no value")
		case takes && !hasValue && len(words) == 0:
			return fmt.Errorf("the flag -%s requires a value", name)
		case takes && !hasValue:
			value, hasValue, words = words[0], true, words[1:]
		}
		l.Flags = append(l.Flags, flag{name, value, hasValue})
	}
	l.Args = words
	l.Help = l.Help || l.Has("help") || l.Has("h")
	return l.checkArguments()
}

func (l *Line) checkArguments() error {
	for _, arg := range l.Args {
		if arg == "" {
			return errors.New("an argument is empty; check whether a variable is empty")
		}
		if len(arg) > 1 && arg[0] == '-' {
			return fmt.Errorf("the flag %s follows an argument; put flags before arguments", outside.Quoted(arg, 100))
		}
	}
	if len(l.Args) > l.Command.Max {
		most := "no arguments"
		if l.Command.Max > 0 {
			most = "at most " + counted(l.Command.Max)
		}
		text := fmt.Sprintf("the subcommand %s takes %s, but the command line has %s; put flags before arguments",
			l.Name, most, counted(len(l.Args)))
		switch near := subcommands(l.Name); {
		case l.Name == "plan":
			text += ". To save the plan, use -out=FILE"
		case l.Name == "destroy":
			text += ". To apply a saved plan, use apply"
		case len(near) > 0:
			text += ". For a subcommand, use one of: " + strings.Join(near, ", ")
		case l.Command.Max == 0:
			text += ". To run in another folder, use terraform -chdir=FOLDER " + l.Name
		}
		return errors.New(text)
	}
	return nil
}

func counted(arguments int) string {
	if arguments == 1 {
		return "1 argument"
	}
	return fmt.Sprintf("%d arguments", arguments)
}

func isHelp(name string) bool { return name == "help" || name == "h" }

func (l *Line) refuse(written, why string) error {
	if why == "" {
		near := ""
		if name := strings.TrimLeft(written, "-"); len(name) > 3 { // any short name resembles some other name
			near = syntax.Suggest(name, l.Command.FlagNames())
		}
		if slices.Contains([]string{"y", "yes", "force", "approve"}, strings.TrimLeft(written, "-")) &&
			l.Command.HasFlag("auto-approve") {
			near = ". Did you mean \"auto-approve\"?"
		}
		elsewhere := ""
		const few = 2
		if others := commands().With(strings.TrimLeft(written, "-")); len(others) > 0 && len(others) <= few {
			elsewhere = "; it is a flag of " + strings.Join(others, " and ")
		}
		why = "wrap does not know this flag" + cmp.Or(near, elsewhere, "; remove it")
	}
	return fmt.Errorf("%s: the flag %s is refused: %s", l.Name, Shown(written, nil), why)
}

// Arguments returns the arguments for the child. They begin with its working directory, because a version manager may
// change the directory before it runs Terraform or OpenTofu.
func (l *Line) Arguments() []string {
	args := append([]string{"-chdir=" + l.Dir}, strings.Fields(l.Name)...)
	for _, f := range l.Flags {
		args = append(args, f.String())
	}
	if l.Help { // some versions mistake an argument for the name of a help page
		return args
	}
	return append(args, l.Args...)
}

// Add adds a flag with a value.
func (l *Line) Add(name, value string) { l.Flags = append(l.Flags, flag{name, value, true}) }

// Has reports whether a flag is set.
func (l *Line) Has(name string) bool {
	return slices.ContainsFunc(l.Flags, func(f flag) bool { return f.Name == name })
}

// IsOff reports whether a flag that is on by default is set to false.
func (l *Line) IsOff(name string) (off bool) {
	for _, f := range l.Flags { // the last occurrence counts
		if f.Name == name {
			on, err := strconv.ParseBool(f.Value)
			off = f.hasValue && err == nil && !on
		}
	}
	return off
}

// Effect returns the effect of the command on the state.
func (l *Line) Effect() Effect {
	if l.Help || l.Name == "init" && l.IsOff("backend") {
		return Passes
	}
	return l.Command.Does
}

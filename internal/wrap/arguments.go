package wrap

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// invocation is a run of terraform or tofu, as it was read. The child gets what
// was read, see [invocation.arguments], and not what was written: it has nothing
// left to read in another way.
type invocation struct {
	command
	program string // resolved
	dir     string // where it works: absolute, links followed
	data    string // the data directory that is not wrap's, absolute
	flags   []argument
	args    []string
	help    bool     // nothing but help is asked for
	saved   string   // see save
	sources []string // see findSources

	lent    *os.File // what the child inherits, nil if there is nothing
	backend *backend // nil if there is none
}

// argument is a flag as it was read.
type argument struct {
	name, value string
	hasValue    bool
}

func (a argument) String() string {
	if !a.hasValue {
		return "-" + a.name
	}
	return "-" + a.name + "=" + a.value
}

// newInvocation reads a command line: [-chdir=DIR] SUBCOMMAND [-flag[=value]…]
// [argument…].
func newInvocation(o Options) (*invocation, error) {
	if name, rest, _ := strings.Cut(strings.Join(o.Command, " "), " "); len(o.Command) == 1 && rest != "" && isCLI(name) {
		return nil, errors.New("the program and its arguments are one word; remove the quotation marks around them")
	}
	if len(o.Command) == 0 || !isCLI(o.Command[0]) {
		return nil, errors.New("only terraform and tofu can be run: one of them follows wrap and its flags; " +
			"a script calls statecrypt wrap in place of terraform, and variables are set before statecrypt")
	}
	i := &invocation{}
	lookup := world.Lookup(o.Environ)
	words, err := i.locate(o.Command, lookup)
	if err != nil {
		return nil, err
	}
	if words, err = i.subcommand(words); err != nil {
		return nil, err
	}
	if o.Leave {
		i.command.Flags += " migrate-state force-copy"
	}
	more, err := i.words(lookup)
	if err != nil {
		return nil, err
	}
	err = i.parse(append(more, words...))
	if err != nil && len(more) > 0 {
		err = fmt.Errorf("%w; the arguments in TF_CLI_ARGS and TF_CLI_ARGS_%s count, too", err, strings.ReplaceAll(i.Name, " ", "_"))
	}
	return i, err
}

// isCLI reports whether a program is called terraform or tofu, perhaps with a version.
func isCLI(program string) bool {
	return cliName.MatchString(filepath.Base(program))
}

var cliName = lazyregexp.New(`^(?i)(terraform|tofu)([-_]v?[0-9][0-9a-z.+-]*)?(\.exe)?$`)

// locate finds the program and the folders, and returns the words that follow.
func (i *invocation) locate(command []string, lookup func(string) (string, bool)) ([]string, error) {
	program, err := exec.LookPath(command[0])
	if err == nil {
		i.program, err = filepath.Abs(program)
	}
	if failed, ok := errors.AsType[*exec.Error](err); ok {
		err = failed.Err
		if errors.Is(err, exec.ErrNotFound) {
			err = errors.New("PATH has no such program; install it, or give its path")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be run: %w", outside.Quoted(command[0], 300), keyfile.Explain(command[0], err))
	}
	return i.locateFolders(command[1:], lookup)
}

func (i *invocation) locateFolders(words []string, lookup func(string) (string, bool)) (rest []string, err error) {
	at := "."
	if len(words) > 0 && strings.HasPrefix(words[0], "-chdir=") {
		at, words = strings.TrimPrefix(words[0], "-chdir="), words[1:]
	}
	if i.dir, err = resolve("", at); err != nil {
		return nil, fmt.Errorf("the folder %s: %w", outside.Quoted(at, 300), keyfile.Explain(at, err))
	}
	data, _ := lookup("TF_DATA_DIR")
	if strings.HasPrefix(data, ownFolder+"/") { // of a run of wrap that has started this one
		data = ""
	}
	i.data = join(i.dir, cmp.Or(data, ".terraform"))
	if data, err := resolve("", i.data); err == nil { // there is one
		i.data = data
	}
	return words, nil
}

// join is path as seen from dir. It is not cleaned: after a link, ".." is not what
// the text says.
func join(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return dir + string(filepath.Separator) + path
}

// resolve returns where path leads from dir, or from here: absolute, with links
// followed as the system does.
func resolve(dir, path string) (string, error) {
	if path == "" {
		return "", errors.New("there is no name")
	}
	here, err := os.Getwd()
	if err == nil {
		path, err = filepath.EvalSymlinks(join(join(here, dir), path)) // which leaves ".." to the end of a link
	}
	if failed, ok := errors.AsType[*os.PathError](err); ok {
		err = failed.Err
	}
	return path, err
}

// subcommand finds the command, of one word or two.
func (i *invocation) subcommand(words []string) (rest []string, err error) {
	if len(words) == 1 && slices.Contains([]string{"-help", "--help", "-h", "-version", "--version", "-v"}, words[0]) {
		i.flags = []argument{{name: strings.TrimLeft(words[0], "-")}}
		i.help = true
		return nil, nil
	}
	if len(words) == 0 || words[0] == "" || words[0][0] == '-' {
		return nil, errors.New("a subcommand is required, such as plan; before it, wrap knows only -chdir=DIR")
	}
	for n := min(2, len(words)); n > 0; n-- {
		name := strings.Join(words[:n], " ")
		if known, ok := commands().Find(name); ok && strings.Count(name, " ") == n-1 {
			i.command = known
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
		return nil, fmt.Errorf("%s requires a subcommand: %s", written, strings.Join(more, ", "))
	}
	if near == "" {
		near = syntax.Suggest(words[0], names)
	}
	return nil, fmt.Errorf("the subcommand %s is refused: wrap does not know what it does with a state%s", outside.Quoted(written, 100),
		cmp.Or(near, "; if it needs none, run it without wrap"))
}

// words are those of the TF_CLI_ARGS variables, in the order in which Terraform
// has them: it puts either right behind the subcommand, the one for that
// subcommand last. The child does not get the variables.
func (i *invocation) words(lookup func(string) (string, bool)) (words []string, err error) {
	if i.Name == "" {
		return nil, nil
	}
	for _, variable := range []string{"TF_CLI_ARGS_" + strings.NewReplacer("-", "_", " ", "_").Replace(i.Name), "TF_CLI_ARGS"} {
		text, _ := lookup(variable)
		if !plainText.MatchString(text) {
			return nil, fmt.Errorf("%s is refused: it may hold letters, digits, spaces and the characters - _ . , : / = + @ %% ~ [ ] only; "+
				"give other arguments to the command itself", variable)
		}
		words = append(words, strings.Fields(text)...)
	}
	return words, nil
}

// plainText has the same words for everybody who reads it.
var plainText = lazyregexp.New(`^[\w\-.,:/=+@%~\[\] \t\r\n]*$`)

// parse reads flags, which end at the first argument, as Go's package flag does.
func (i *invocation) parse(words []string) error {
	for len(words) > 0 && len(words[0]) > 1 && words[0][0] == '-' {
		written, value, hasValue := strings.Cut(words[0], "=")
		name := strings.TrimPrefix(written[1:], "-")
		words = words[1:]
		takes := i.command.TakesValue(name)
		switch {
		case !i.command.HasFlag(name):
			return i.refuse(written, i.command.Meant(name, refused()))
		case hasValue && isHelp(name): // whatever it means, it may not be help
			return i.refuse(written, "it has no value")
		case takes && !hasValue && len(words) == 0:
			return fmt.Errorf("the flag -%s requires a value", name)
		case takes && !hasValue:
			value, hasValue, words = words[0], true, words[1:]
		}
		i.flags = append(i.flags, argument{name, value, hasValue})
	}
	i.args = words
	i.help = i.help || i.has("help") || i.has("h")
	return i.checkArguments()
}

func (i *invocation) checkArguments() error {
	for _, arg := range i.args {
		if arg == "" || len(arg) > 1 && arg[0] == '-' {
			return fmt.Errorf("the argument %s is refused: an argument is not empty, and flags come before all arguments", outside.Quoted(arg, 100))
		}
	}
	if len(i.args) > i.command.Max {
		text := fmt.Sprintf("%s has %s, and wrap knows of %d; flags come before all arguments", i.Name, counted(len(i.args)), i.command.Max)
		switch near := subcommands(i.Name); {
		case i.Name == "plan":
			text += "; to save the plan, use -out=FILE"
		case i.Name == "destroy":
			text += "; apply applies a saved plan"
		case len(near) > 0:
			text += "; there are: " + strings.Join(near, ", ")
		case i.command.Max == 0:
			text += "; leave it out; to run in another folder: terraform -chdir=FOLDER " + i.Name
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

func isHelp(flag string) bool { return flag == "help" || flag == "h" }

func (i *invocation) refuse(flag, why string) error {
	if why == "" {
		near := ""
		if name := strings.TrimLeft(flag, "-"); len(name) > 3 { // any short one is near another
			near = syntax.Suggest(name, i.command.FlagNames())
		}
		if slices.Contains([]string{"y", "yes", "force", "approve"}, strings.TrimLeft(flag, "-")) &&
			i.command.HasFlag("auto-approve") {
			near = ". Did you mean \"auto-approve\"?"
		}
		elsewhere := ""
		const few = 2
		if others := commands().With(strings.TrimLeft(flag, "-")); len(others) > 0 && len(others) <= few {
			elsewhere = "; it is a flag of " + strings.Join(others, " and ")
		}
		why = "wrap does not know what it does" + cmp.Or(near, elsewhere, "; leave it out")
	}
	return fmt.Errorf("%s: the flag %s is refused: %s", i.Name, Shown(flag, nil), why)
}

// arguments is the command line of the child. It says where to work, also to a program
// that goes elsewhere before it runs the CLI.
func (i *invocation) arguments() []string {
	args := append([]string{"-chdir=" + i.dir}, strings.Fields(i.Name)...)
	for _, f := range i.flags {
		args = append(args, f.String())
	}
	return append(args, i.args...)
}

// has reports whether a flag is set.
func (i *invocation) has(name string) bool {
	return slices.ContainsFunc(i.flags, func(f argument) bool { return f.name == name })
}

// effect is what the run does with the state.
func (i *invocation) effect() effect {
	if i.help || i.Name == "init" && i.isOff("backend") {
		return passes
	}
	return i.command.Does
}

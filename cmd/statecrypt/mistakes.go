package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
)

// named is an error of package flag, with what is meant if it is about a flag that there
// is not, or else the flags that there are.
func (c *call) named(err error) error {
	if _, rest, ok := strings.Cut(err.Error(), " for -"); ok && strings.HasPrefix(err.Error(), "invalid boolean value ") {
		name, _, _ := strings.Cut(rest, ":")
		return fmt.Errorf("-%s has no value: give it, or leave it out", name)
	}
	if name, ok := strings.CutPrefix(err.Error(), "flag needs an argument: "); ok {
		return fmt.Errorf("%s requires a value, and none follows", name)
	}
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	switch {
	case strings.HasPrefix(err.Error(), "bad flag syntax"), unknown && keyfile.IsContent(name): // such as -----BEGIN PRIVATE KEY-----
		return errors.New("an argument begins with a dash, and is no flag; the names of files are required")
	case !unknown:
		return err
	}
	flags := strings.Fields(c.flags)
	if meant := c.meant(name, flags); meant != "" {
		return fmt.Errorf("%s has no flag -%s; %s", c.name, name, meant)
	}
	if len(flags) == 0 {
		return fmt.Errorf("%s has no flags; leave it out", c.name)
	}
	return fmt.Errorf("%s has no flag -%s; it has -%s", c.name, name, strings.Join(flags, ", -"))
}

// meant says what is probably meant by a flag that there is not, "" if nobody knows.
func (c *call) meant(name string, flags []string) string {
	alias := map[string]string{"c": "config", "out": "o", "output": "o", "recipient": "r", "recipients-file": "R", "identity": "i"}[name]
	near := ""
	if len(name) > 1 {
		near = syntax.Nearest(name, flags)
	}
	switch {
	case c.program && wrap.IsFlag(name):
		return "flags of the program follow its subcommand: statecrypt wrap … -- terraform apply -" + name
	case slices.Contains(flags, alias):
		return "did you mean -" + alias
	case c.name == "rotate" && cmp.Or(alias, name) == "config":
		return "the old settings are given with -from, and the new ones with -to"
	case c.name == "rotate" && cmp.Or(alias, name) == "o":
		return "it replaces the files themselves"
	case near != "":
		return "did you mean -" + near
	case cmp.Or(alias, name) == "config" && c.name == "outputs":
		return "it reads plaintext: statecrypt decrypt -config FILE STATE | statecrypt outputs"
	case cmp.Or(alias, name) == "config":
		return "it requires no settings; leave that out"
	}
	for _, f := range foreign() {
		isMeant := f.with == "" || f.with == c.name || slices.Contains(flags, f.with)
		if len(flags) > 0 && isMeant && slices.Contains(strings.Fields(f.flags), name) {
			return f.meant
		}
	}
	if len(name) == 1 { // any is one of key-provider
		return ""
	}
	if others := commandsWith(cmp.Or(alias, name)); len(others) > 0 {
		return "it is a flag of " + strings.Join(others, ", ")
	}
	return ""
}

// foreignFlags are flags of other programs, of one command or of those with a flag.
type foreignFlags struct{ flags, with, meant string }

func foreign() []foreignFlags {
	return []foreignFlags{
		{"recipients", "key-provider", "did you mean -r, or -R for a file of them"},
		{"raw", "outputs", "it prints a state in JSON: statecrypt outputs FILE | jq -r .outputs.NAME.value"},
		{"dry-run check", "rotate", "statecrypt verify -config FILE tells what the settings of -from or -to open, and writes nothing"},
		{"passphrase password key pass", "config", "the settings of -config say where the key is, such as var.passphrase, which " +
			"-var 'passphrase=…' or TF_VAR_passphrase sets"},
		{"passphrase password key pass", "rotate", "the settings of -from and -to say where the keys are"},
		{"in input f file state", "", "the names of files follow the flags, without one"},
		{"r R recursive all", "", "it reads no folders; the shell or find gives the names, as in -exec statecrypt … {} +"},
		{"in-place i", "o", "with -o, it writes to a file, which may be the one that is read"},
		{"in-place i", "rotate", "it replaces the files anyway"},
		{"method", "config", "the settings of -config say which method: state { method = method.aes_gcm.main }"},
		{"q quiet s silent", "", "a shell leaves out what is said by 2> /dev/null"},
		{"v verbose debug", "", "there is no more to say; each error names the file and the setting"},
	}
}

// commandsWith are the names of the commands that have a flag.
func commandsWith(flag string) (names []string) {
	for _, other := range commands() {
		if slices.Contains(strings.Fields(other.flags), flag) {
			names = append(names, other.name)
		}
	}
	return names
}

// checkValue finds a flag in the place of a value that was left out. What is written with
// "=" is no flag.
func (c *call) checkValue(flag, value string) {
	for known := range strings.FieldsSeq(c.flags) {
		if value == "-"+known || value == "--"+known {
			c.mistake = errors.Join(c.mistake, fmt.Errorf("-%s requires a value, and the flag %s follows", flag, value))
		}
	}
}

// miscounted says what the arguments are.
func (c *call) miscounted() error {
	text := fmt.Sprintf("%s requires %s; arguments given: %d", c.name, c.wants, len(c.args))
	switch tooMany := len(c.args) > c.max; {
	case tooMany && c.name == "outputs" && len(c.only) == 0:
		text += "; names of outputs are given with -only"
	case tooMany && c.name == "outputs":
		text += "; several names in -only are one argument, with commas between them"
	case c.name == "wrap":
		text += ", such as statecrypt wrap -config FILE -- terraform plan"
	case c.name == "rotate" && c.inBackend:
		text += "; leave out -backend, or the files"
	case c.name == "rotate":
		text += "; name the files, which are replaced"
	case tooMany && c.name == "key-provider":
		text += "; recipients are given with -r, and files with -R or -i"
	case tooMany && c.config == "" && strings.HasPrefix(c.flags, "config "):
		text += "; settings are given with -config"
	case tooMany && strings.HasPrefix(c.flags, "config "):
		text += "; verify and rotate work on several"
	}
	return errors.New(text)
}

// noCommand is about a word in the place of a command.
func noCommand(name string, names []string) string {
	const see = "; see statecrypt -h"
	near := syntax.Suggest(name, names)
	switch {
	case keyfile.IsContent(name):
		return "there is no such command" + see
	case strings.HasPrefix(name, "-"):
		return fmt.Sprintf("there is no flag %s before the command: flags follow it%s", strings.SplitN(name, "=", 2)[0], see)
	case name == "terraform" || name == "tofu" || wrap.IsCommand(name) && near == "":
		return fmt.Sprintf("there is no command %q; Terraform and OpenTofu run under wrap: statecrypt wrap -config FILE -- terraform plan", name)
	case keyfile.Exists(name):
		return fmt.Sprintf("%s is a file; a command comes first, such as statecrypt inspect FILE%s", shown(name), see)
	}
	if near != "" {
		return fmt.Sprintf("there is no command %q%s", name, near)
	}
	return fmt.Sprintf("there is no command %q%s%s", name, syntax.Configured(name, names), see)
}

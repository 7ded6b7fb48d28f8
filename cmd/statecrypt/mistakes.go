package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
)

// named is an error of package flag, with what is meant if it is about a flag that there
// is not, or else the flags that there are. A flag that nobody knows may begin like one,
// and be a secret, such as -pSECRET.
func (c *call) named(err error) error {
	if _, rest, ok := strings.Cut(err.Error(), " for -"); ok && strings.HasPrefix(err.Error(), "invalid boolean value ") {
		name, _, _ := strings.Cut(rest, ":")
		return fmt.Errorf("-%s has no value: write -%[1]s alone", name)
	}
	if name, ok := strings.CutPrefix(err.Error(), "flag needs an argument: "); ok {
		return fmt.Errorf("%s requires a value, and none follows", name)
	}
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	switch {
	case strings.HasPrefix(err.Error(), "bad flag syntax"), unknown && recognize.IsContent(name): // such as -----BEGIN PRIVATE KEY-----
		return errors.New("an argument begins with a dash, and is no flag; the names of files are required")
	case !unknown:
		return err
	}
	flags := strings.Fields(c.flags)
	switch meant := c.meant(name, flags); {
	case meant != "":
		return fmt.Errorf("%s has no flag %s; %s", c.name, wrap.Shown("-"+name, flagNames()), meant)
	case len(flags) == 0:
		return fmt.Errorf("%s has no flags; leave it out", c.name)
	}
	return fmt.Errorf("%s has no flag %s; it has -%s", c.name, wrap.Shown("-"+name, flagNames()), strings.Join(flags, ", -"))
}

// flagNames are those that anybody knows.
func flagNames() (names []string) {
	for _, c := range commands() {
		names = append(names, strings.Fields(c.flags)...)
	}
	for _, f := range foreign() {
		names = append(names, strings.Fields(f.flags)...)
	}
	return slices.AppendSeq(names, maps.Keys(aliases()))
}

// meant says what is probably meant by a flag that there is not, "" if nobody knows.
func (c *call) meant(name string, flags []string) string {
	alias := aliases()[name]
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
	if others := commandsWith(name); len(others) > 0 {
		return "it is a flag of " + strings.Join(others, ", ")
	}
	return ""
}

// aliases are longer or shorter names :: of a flag.
func aliases() map[string]string {
	return map[string]string{"c": "config", "out": "o", "output": "o", "recipient": "r", "recipients-file": "R", "identity": "i"}
}

// foreignFlags are flags of other programs, of one command or of those with a flag.
type foreignFlags struct{ flags, with, meant string }

func foreign() []foreignFlags {
	const (
		recipients = `recipients belong in the settings: key_provider "age" "main" { recipients = [var.recipient] }`
		identities = `identities belong in the settings: key_provider "age" "main" { identity_files = ["key.txt"] }`
		inPlace    = "with -o, it writes to a file, which may be the one that is read"
		noOutput   = "it replaces a file only after the new one was opened; to keep the old one, copy it before"
	)
	return []foreignFlags{
		{"recipients", "key-provider", "did you mean -r, or -R for a file of them"},
		{"raw", "outputs", "it prints a state in JSON: statecrypt outputs FILE | jq -r .outputs.NAME.value"},
		{"json", "outputs", "it prints JSON anyway; leave that out"},
		{"dry-run check", "rotate", "statecrypt verify -config FILE tells what the settings of -from or -to open, and writes nothing"},
		{"passphrase password key pass p k", "config", "the settings of -config say where the key is, such as var.passphrase, which " +
			"-var 'passphrase=…' or TF_VAR_passphrase sets"},
		{"passphrase password key pass p k", "rotate", "the settings of -from and -to say where the keys are"},
		{"backend address url", "wrap", "the address of the state belongs in the file of -config: backend \"http\" { address = " +
			"\"https://example.com/state\" }, or in STATECRYPT_HTTP_ADDRESS"},
		{"chdir C", "wrap", "Terraform has it: statecrypt wrap … -- terraform -chdir=FOLDER …"},
		{"r R recipient recipients recipients-file a age", "encrypt", recipients},
		{"identity identities key-file keyfile", "config", identities},
		{"identity identities key-file keyfile recipient recipients", "rotate", identities},
		{"i", "o", inPlace + "; identities of age belong in the settings, as identity_files"},
		{"input", "", "it asks nothing; leave it out, and write the names of files after the flags"},
		{"no-color color", "", "what it prints has no colors; leave it out"},
		{"chdir C", "", "a shell changes the folder: (cd FOLDER && statecrypt …)"},
		{"in f file state", "", "the names of files follow the flags, without one"},
		{"r R recursive all", "", "it reads no folders; the shell or find gives the names, as in -exec statecrypt … {} +"},
		{"in-place inplace overwrite write w", "o", inPlace},
		{"in-place inplace overwrite write w i", "rotate", "it replaces the files anyway"},
		{"backup force f", "rotate", noOutput},
		{"vault-password-file password-file passphrase-file pass-file", "", "a passphrase in a file belongs in the settings: " +
			"passphrase = trimspace(file(\"FILE\"))"},
		{"method", "config", "the settings of -config say which method: state { method = method.aes_gcm.main }"},
		{"d decrypt", "decrypt", "statecrypt decrypt decrypts without it; leave it out"},
		{"e encrypt", "encrypt", "statecrypt encrypt encrypts without it; leave it out"},
		{"q quiet s silent", "", "> /dev/null hides what it prints; errors are printed still, and the exit code says whether all went well"},
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
	text := fmt.Sprintf("%s requires %s, and %d were given", c.name, c.wants, len(c.args))
	switch len(c.args) {
	case 0:
		text = fmt.Sprintf("%s requires %s, and none was given", c.name, c.wants)
	case 1:
		text = fmt.Sprintf("%s requires %s, and one was given", c.name, c.wants)
	}
	if slices.ContainsFunc(c.args, func(arg string) bool { return strings.HasPrefix(arg, "–") || strings.HasPrefix(arg, "—") }) {
		return errors.New(text + "; one begins with a long dash, as word processors write it, and flags begin with -")
	}
	for name := range strings.FieldsSeq(c.flags) {
		if slices.Contains(c.args, "/"+name) {
			return fmt.Errorf("%s; flags begin with - and not with /: -%s", text, name)
		}
	}
	isWord := func(arg string) bool {
		return slices.Contains([]string{"true", "false", "yes", "no", "on", "off"}, arg)
	}
	if len(c.args) > c.max && slices.ContainsFunc(c.args, isWord) {
		return errors.New(text + "; a flag such as -plan has no value: leave out true, or what stands for it")
	}
	if all := strings.Join(c.args, " "); len(c.args) > 1 && recognize.Exists(all) {
		return fmt.Errorf("%s; %s is one file: put quotation marks around its name, or the variable", text, shown(all))
	}
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
		text += "; it encrypts no files, which statecrypt encrypt does; recipients are given with -r, and files with -R or -i"
	case tooMany && c.config == "" && strings.HasPrefix(c.flags, "config "):
		text += "; settings are given with -config"
	case tooMany && slices.ContainsFunc(c.given, func(v given) bool { return !v.isFile }):
		text += "; a value with spaces is in quotation marks: -var 'NAME=…'"
	case tooMany && strings.HasPrefix(c.flags, "config "):
		text += "; verify and rotate work on several"
	}
	return errors.New(text)
}

// noCommand is about a word in the place of a command.
func noCommand(name string, names []string) string {
	const see = "; see statecrypt -h"
	near := syntax.Suggest(name, names)
	if name == "edit" {
		return `there is no command "edit": statecrypt decrypt -o FILE …, change FILE, and statecrypt encrypt it again` + see
	}
	for command, synonyms := range map[string]string{
		"decrypt": "open unseal unlock cat view read show reveal dec", "encrypt": "seal lock protect enc", "verify": "check validate test doctor",
		"rotate": "rekey convert migrate updatekeys reencrypt re-encrypt", "wrap": "exec run", "outputs": "output", "inspect": "info status stat",
		"version": "--version", "key-provider": "keyprovider kp keygen",
	} {
		if slices.Contains(strings.Fields(synonyms), name) {
			near = fmt.Sprintf(". Did you mean %q?", command)
		}
	}
	switch {
	case recognize.IsContent(name):
		return "there is no such command" + see
	case strings.HasPrefix(name, "-"):
		word := strings.TrimLeft(name, "-")
		at := slices.IndexFunc(names, func(command string) bool {
			return command == word || len(word) == 1 && strings.HasPrefix(command, word)
		})
		if at >= 0 {
			return fmt.Sprintf("a command has no dash: statecrypt %s …%s", names[at], see)
		}
		return fmt.Sprintf("there is no flag %s before the command: flags follow it%s", wrap.Shown(name, flagNames()), see)
	case name == "show" && near != "":
		return `there is no command "show"; decrypt prints a state, and terraform show a plan that statecrypt decrypt -plan -o FILE writes`
	case name == "state":
		return `there is no command "state"; Terraform's runs under wrap: statecrypt wrap -config FILE -- terraform state pull`
	case name == "terraform" || name == "tofu" || wrap.IsCommand(name) && near == "":
		return fmt.Sprintf("there is no command %q; Terraform and OpenTofu run under wrap: statecrypt wrap -config FILE -- terraform plan", name)
	case recognize.Exists(name):
		return fmt.Sprintf("%s is a file; a command comes first, such as statecrypt inspect FILE%s", shown(name), see)
	}
	if near != "" {
		return fmt.Sprintf("there is no command %q%s", name, near)
	}
	return fmt.Sprintf("there is no command %q%s%s", name, syntax.Configured(name, names), see)
}

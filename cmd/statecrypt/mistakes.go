package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/cli"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/cmdline"
)

// named replaces an error from package flag. For an unknown flag, the new error suggests the flag that was
// probably meant, or lists all flags of the command. It does not repeat an unknown flag, which may contain a
// secret, such as -pSECRET.
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
	flags := c.FlagNames()
	switch meant := c.meant(name, flags); {
	case meant != "":
		return fmt.Errorf("%s has no flag %s; %s", c.Name, cmdline.Shown("-"+name, flagNames()), meant)
	case len(flags) == 0:
		return fmt.Errorf("%s has no flags; leave it out", c.Name)
	}
	return fmt.Errorf("%s has no flag %s; it has -%s", c.Name, cmdline.Shown("-"+name, flagNames()), strings.Join(flags, ", -"))
}

// flagNames returns the flags of all commands, their aliases, and the flags of other programs that foreign
// explains.
func flagNames() []string {
	names := commands().FlagNames()
	for _, f := range foreign() {
		names = append(names, strings.Fields(f.Flags)...)
	}
	return slices.AppendSeq(names, maps.Keys(aliases()))
}

// meant returns a hint about an unknown flag, or an empty string if there is none.
func (c *call) meant(name string, flags []string) string {
	alias := aliases()[name]
	near := ""
	if len(name) > 1 {
		near = syntax.Nearest(name, flags)
	}
	switch {
	case c.Name == "wrap" && cmdline.IsFlag(name):
		return "flags of the program follow its subcommand: statecrypt wrap … -- terraform apply -" + name
	case slices.Contains(flags, alias):
		return "did you mean -" + alias
	case c.Name == "rotate" && cmp.Or(alias, name) == "config":
		return "the old settings are given with -from, and the new ones with -to"
	case c.Name == "rotate" && cmp.Or(alias, name) == "o":
		return "it replaces the files themselves"
	case near != "":
		return "did you mean -" + near
	case cmp.Or(alias, name) == "config" && c.Name == "outputs":
		return "it reads plaintext: statecrypt decrypt -config FILE STATE | statecrypt outputs"
	case cmp.Or(alias, name) == "config":
		return "it has no settings; remove them"
	}
	if text := c.Meant(name, foreign()); text != "" && len(flags) > 0 {
		return text
	}
	if len(name) == 1 { // do not suggest the one-letter flags of key-provider
		return ""
	}
	if others := commands().With(name); len(others) > 0 {
		return "it is a flag of " + strings.Join(others, ", ")
	}
	return ""
}

// aliases maps alternative names of flags to the real names.
func aliases() map[string]string {
	return map[string]string{"c": "config", "out": "o", "output": "o", "recipient": "r", "recipients-file": "R", "identity": "i"}
}

// foreign returns explanations for flags of other programs.
func foreign() []cli.Mistake {
	const (
		recipients = `recipients belong in the settings: key_provider "age" "main" { recipients = [var.recipient] }`
		identities = `identities belong in the settings: key_provider "age" "main" { identity_files = ["key.txt"] }`
		inPlace    = "with -o, it writes to a file, which may be the one that is read"
		noOutput   = "it replaces a file only after it has opened the new one; to keep the old one, copy it first"
	)
	return []cli.Mistake{
		{Flags: "recipients", With: "key-provider", Meant: "did you mean -r, or -R for a file of them"},
		{Flags: "raw", With: "outputs", Meant: "it prints a state in JSON: statecrypt outputs FILE | jq -r .outputs.NAME.value"},
		{Flags: "json", With: "outputs", Meant: "it prints JSON anyway; leave that out"},
		{Flags: "dry-run check", With: "rotate",
			Meant: "statecrypt verify -config FILE shows which files the settings of -from or -to open, and writes nothing"},
		{Flags: "passphrase password key pass p k", With: "config",
			Meant: "the settings of -config say where the key is, such as var.passphrase, which -var 'passphrase=…' or TF_VAR_passphrase sets"},
		{Flags: "passphrase password key pass p k", With: "rotate", Meant: "the settings of -from and -to say where the keys are"},
		{Flags: "backend address url", With: "wrap", Meant: "the address of the state belongs in the file of -config: backend \"http\" { " +
			"address = \"https://example.com/state\" }, or in STATECRYPT_HTTP_ADDRESS"},
		{Flags: "chdir C", With: "wrap", Meant: "Terraform has it: statecrypt wrap … -- terraform -chdir=FOLDER …"},
		{Flags: "r R recipient recipients recipients-file a age", With: "encrypt", Meant: recipients},
		{Flags: "identity identities key-file keyfile", With: "config", Meant: identities},
		{Flags: "identity identities key-file keyfile recipient recipients", With: "rotate", Meant: identities},
		{Flags: "i", With: "o", Meant: inPlace + "; identities of age belong in the settings, as identity_files"},
		{Flags: "input", Meant: "it asks nothing; leave it out, and write the names of files after the flags"},
		{Flags: "chdir C", Meant: "a shell changes the folder: (cd FOLDER && statecrypt …)"},
		{Flags: "in f file state", Meant: "the names of files follow the flags, without one"},
		{Flags: "r R recursive all", Meant: "it reads no folders; the shell or find gives the names, as in -exec statecrypt … {} +"},
		{Flags: "in-place inplace overwrite write w", With: "o", Meant: inPlace},
		{Flags: "in-place inplace overwrite write w i", With: "rotate", Meant: "it replaces the files anyway"},
		{Flags: "backup force f", With: "rotate", Meant: noOutput},
		{Flags: "vault-password-file password-file passphrase-file pass-file", Meant: "a passphrase in a file belongs in the settings: " +
			"passphrase = trimspace(file(\"FILE\"))"},
		{Flags: "method", With: "config", Meant: "the settings of -config say which method: state { method = method.aes_gcm.main }"},
	}
}

// checkValue returns an error if the value of a flag is another flag, because the value itself is missing. It
// does not recognize a flag followed by "=".
func (c *call) checkValue(flag, value string) error {
	if known := strings.TrimPrefix(strings.TrimPrefix(value, "-"), "-"); known != value && c.HasFlag(known) {
		return fmt.Errorf("-%s requires a value, and the flag %s follows", flag, value)
	}
	return nil
}

// miscounted returns the error for a wrong number of arguments.
func (c *call) miscounted() error {
	text := fmt.Sprintf("%s requires %s, and %d were given", c.Name, c.Wants, len(c.args))
	switch len(c.args) {
	case 0:
		text = fmt.Sprintf("%s requires %s, and none was given", c.Name, c.Wants)
	case 1:
		text = fmt.Sprintf("%s requires %s, and one was given", c.Name, c.Wants)
	}
	if slices.ContainsFunc(c.args, func(arg string) bool { return strings.HasPrefix(arg, "–") || strings.HasPrefix(arg, "—") }) {
		return errors.New(text + "; one begins with a long dash, as word processors write it, and flags begin with -")
	}
	isWord := func(arg string) bool {
		return slices.Contains([]string{"true", "false", "yes", "no", "on", "off"}, arg)
	}
	if len(c.args) > c.Max && slices.ContainsFunc(c.args, isWord) {
		return errors.New(text + "; a flag such as -plan has no value: leave out true")
	}
	if all := strings.Join(c.args, " "); len(c.args) > 1 && recognize.Exists(all) {
		return fmt.Errorf("%s; %s is one file: put quotation marks around its name, or the variable", text, shown(all))
	}
	switch tooMany := len(c.args) > c.Max; {
	case tooMany && c.Name == "outputs" && !c.isGiven("only"):
		text += "; names of outputs are given with -only"
	case tooMany && c.Name == "outputs":
		text += "; several names in -only are one argument, with commas between them"
	case c.Name == "wrap":
		text += ", such as statecrypt wrap -config FILE -- terraform plan"
	case c.Name == "rotate" && c.on("backend"):
		text += "; leave out -backend, or the files"
	case c.Name == "rotate":
		text += "; name the files, which are replaced"
	case tooMany && c.Name == "key-provider":
		text += "; it encrypts no files, which statecrypt encrypt does; recipients are given with -r, and files with -R or -i"
	case tooMany && c.text("config") == "" && strings.HasPrefix(c.Flags, "config="):
		text += "; settings are given with -config"
	case tooMany && slices.ContainsFunc(c.given, func(v given) bool { return !v.isFile }):
		text += "; a value with spaces is in quotation marks: -var 'NAME=…'"
	case tooMany && strings.HasPrefix(c.Flags, "config="):
		text += "; verify and rotate work on several"
	}
	return errors.New(text)
}

// noCommand returns the error message for an unknown command.
func noCommand(name string, names []string) string {
	const see = "; see statecrypt -h"
	near := syntax.Suggest(name, names)
	if name == "edit" {
		return `there is no command "edit": statecrypt decrypt -o FILE …, change FILE, and statecrypt encrypt it again` + see
	}
	for command, synonyms := range map[string]string{
		"decrypt": "open unseal unlock cat view read reveal dec", "encrypt": "seal lock protect enc", "verify": "check validate test doctor",
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
		return fmt.Sprintf("there is no flag %s before the command: flags follow it%s", cmdline.Shown(name, flagNames()), see)
	case name == "state":
		return `there is no command "state"; Terraform's runs under wrap: statecrypt wrap -config FILE -- terraform state pull`
	case name == "terraform" || name == "tofu":
		return fmt.Sprintf("there is no command %q; it runs under wrap: statecrypt wrap -config FILE -- %[1]s …", name)
	case cmdline.IsCommand(name) && near == "":
		return fmt.Sprintf("there is no command %q; Terraform and OpenTofu run under wrap: statecrypt wrap -config FILE -- terraform %[1]s", name)
	case recognize.Exists(name):
		return fmt.Sprintf("%s is a file; a command comes first, such as statecrypt inspect FILE%s", shown(name), see)
	}
	if near != "" {
		return fmt.Sprintf("there is no command %q%s", name, near)
	}
	return fmt.Sprintf("there is no command %q%s%s", name, syntax.Configured(name, names), see)
}

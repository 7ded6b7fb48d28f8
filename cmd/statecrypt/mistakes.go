package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/cli"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
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
		return fmt.Errorf("-%s takes no value; write -%[1]s alone", name)
	}
	if name, ok := strings.CutPrefix(err.Error(), "flag needs an argument: "); ok {
		return fmt.Errorf("%s requires a value, but no value follows", name)
	}
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	switch {
	case strings.HasPrefix(err.Error(), "bad flag syntax"), unknown && recognize.IsContent(name): // such as -----BEGIN PRIVATE KEY-----
		return errors.New("an argument begins with a dash, but is not a flag; write ./ before a file name that begins with a dash")
	case !unknown:
		return err
	}
	flags := c.FlagNames()
	switch meant := c.meant(name, flags); {
	case meant != "":
		return fmt.Errorf("the command %s has no flag %s%s", c.Name, cmdline.Shown("-"+name, flagNames()), meant)
	case len(flags) == 0:
		return fmt.Errorf("the command %s has no flags; remove the flag", c.Name)
	}
	return fmt.Errorf("the command %s has no flag %s; its flags are -%s", c.Name, cmdline.Shown("-"+name, flagNames()),
		strings.Join(flags, ", -"))
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
		return "; put flags of the program after the program: statecrypt wrap … -- terraform … -" + name
	case slices.Contains(flags, alias):
		return ". Did you mean -" + alias + "?"
	case c.Name == "rotate" && cmp.Or(alias, name) == "config":
		return "; use -from for the old settings, and -to for the new settings"
	case c.Name == "rotate" && cmp.Or(alias, name) == "o":
		return "; remove the flag, because the files themselves are replaced"
	case near != "":
		return ". Did you mean -" + near + "?"
	case cmp.Or(alias, name) == "config" && c.Name == "outputs":
		return "; decrypt the state first: statecrypt decrypt -config " + fault.Config + " STATE | statecrypt outputs"
	case cmp.Or(alias, name) == "config":
		return "; remove the flag, because this command uses no settings"
	}
	if text := c.Meant(name, foreign()); text != "" && len(flags) > 0 {
		return "; " + text
	}
	if len(name) == 1 { // do not suggest the one-letter flags of key-provider
		return ""
	}
	if others := commands().With(name); len(others) > 0 {
		return "; it is a flag of " + strings.Join(others, ", ")
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
		recipients = `set the recipients in the settings: key_provider "age" "main" { recipients = [var.recipient] }`
		identities = `set the file of the identities in the settings: key_provider "age" "main" { identity_files = ["key.txt"] }`
		inPlace    = "write to a file with -o FILE. FILE may be the input file"
		noOutput   = "to keep the old file, copy it first. A file is replaced only after its new version has been opened"
	)
	return []cli.Mistake{
		{Flags: "recipients", With: "key-provider", Meant: "use -r, or -R for a file of recipients"},
		{Flags: "raw", With: "outputs", Meant: "read the value from the JSON: statecrypt outputs FILE | jq -r .outputs.NAME.value"},
		{Flags: "json", With: "outputs", Meant: "remove the flag, because the output is always JSON"},
		{Flags: "dry-run check", With: "rotate",
			Meant: "to see which files the settings open, run statecrypt verify -config FILE with the old settings, then with the new settings"},
		{Flags: "passphrase password key pass p k", With: "config",
			Meant: "write passphrase = var.passphrase in the settings of -config, and set the variable with -var 'passphrase=…' " +
				"or TF_VAR_passphrase"},
		{Flags: "passphrase password key pass p k", With: "rotate", Meant: "set the keys in the settings of -from and -to"},
		{Flags: "backend address url", With: "wrap", Meant: "say where the state is in the -config file, in a block backend " +
			`"azurerm", "file", "gcs", "git", "http" or "s3"`},
		{Flags: "backend", With: "encrypt", Meant: "to encrypt the state in the backend, run statecrypt wrap -config " + fault.Config +
			" -encrypt-existing -- terraform init"},
		{Flags: "chdir C", With: "wrap",
			Meant: "put this flag of Terraform after the program: statecrypt wrap … -- terraform -chdir=FOLDER …"},
		{Flags: "r R recipient recipients recipients-file a age", With: "encrypt", Meant: recipients},
		{Flags: "identity identities key-file keyfile", With: "config", Meant: identities},
		{Flags: "identity identities key-file keyfile recipient recipients", With: "rotate", Meant: identities},
		{Flags: "i", With: "o", Meant: inPlace + ". Set age identities in the settings, with the argument identity_files"},
		{Flags: "input", Meant: "write the file names after all flags. File names need no flag of their own. This command asks no questions"},
		{Flags: "chdir C", Meant: "change the folder in the shell: (cd FOLDER && statecrypt …)"},
		{Flags: "in f file state", Meant: "write the file names after all flags. File names need no flag of their own"},
		{Flags: "r R recursive all", Meant: "give the path of each file, for example with find -exec statecrypt … {} +. Folders are not read"},
		{Flags: "in-place inplace overwrite write w", With: "o", Meant: inPlace},
		{Flags: "in-place inplace overwrite write w i", With: "rotate",
			Meant: "remove the flag, because the files themselves are always replaced"},
		{Flags: "backup force f", With: "rotate", Meant: noOutput},
		{Flags: "force f auto-approve y", With: "restore", Meant: "use -yes to skip the question, and -replace if the state in the " +
			"backend is missing, damaged or another state"},
		{Flags: "vault-password-file password-file passphrase-file pass-file", Meant: "set the file of the passphrase in the settings: " +
			"passphrase = trimspace(file(\"FILE\"))"},
		{Flags: "method", With: "config", Meant: "select the method in the settings of -config: state { method = method.aes_gcm.main }"},
	}
}

// checkValue returns an error if the value of a flag is another flag, or the -- before a program, because the value
// itself is missing. It does not recognize a flag followed by "=".
func (c *call) checkValue(flag, value string) error {
	if value == "--" {
		return fmt.Errorf("-%s requires a value, but -- follows", flag)
	}
	if known := strings.TrimPrefix(strings.TrimPrefix(value, "-"), "-"); known != value && c.HasFlag(known) {
		return fmt.Errorf("-%s requires a value, but the flag %s follows", flag, value)
	}
	return nil
}

// miscounted returns the error for a wrong number of arguments.
func (c *call) miscounted() error {
	text := fmt.Sprintf("the command %s requires %s, but got %d arguments", c.Name, c.Wants, len(c.args))
	switch len(c.args) {
	case 0:
		text = fmt.Sprintf("the command %s requires %s, but got no argument", c.Name, c.Wants)
	case 1:
		text = fmt.Sprintf("the command %s requires %s, but got one argument", c.Name, c.Wants)
	}
	if slices.ContainsFunc(c.args, func(arg string) bool { return strings.HasPrefix(arg, "–") || strings.HasPrefix(arg, "—") }) {
		return errors.New(text + "; replace the long dash at the beginning of an argument with -")
	}
	isWord := func(arg string) bool {
		return slices.Contains([]string{"true", "false", "yes", "no", "on", "off"}, arg)
	}
	if len(c.args) > c.Max && slices.ContainsFunc(c.args, isWord) {
		return errors.New(text + "; remove true, because -plan and similar flags take no value")
	}
	if all := strings.Join(c.args, " "); len(c.args) > 1 && recognize.Exists(all) {
		return fmt.Errorf("%s; put quotation marks around the file name %s, or around the variable", text, shown(all))
	}
	switch tooMany := len(c.args) > c.Max; {
	case tooMany && c.Name == "outputs" && !c.isGiven("only"):
		text += "; use -only for the names of outputs"
	case tooMany && c.Name == "outputs":
		text += "; write several names in -only as one argument, separated by commas"
	case c.Name == "wrap":
		text += "; run, for example, statecrypt wrap -config " + fault.Config + " -- terraform plan"
	case c.Name == "rotate" && c.on("backend"):
		text += "; remove -backend, or remove the files"
	case c.Name == "rotate":
		text += "; add the names of the files to replace"
	case tooMany && c.Name == "key-provider":
		text += "; use -r for recipients, and -R or -i for files. To encrypt files, use statecrypt encrypt"
	case tooMany && c.text("config") == "" && strings.HasPrefix(c.Flags, "config="):
		text += "; use -config for the settings"
	case tooMany && slices.ContainsFunc(c.given, func(v given) bool { return !v.isFile }):
		text += "; put quotation marks around a value with spaces: -var 'NAME=…'"
	case tooMany && c.Max == 1 && c.HasFlag("o"):
		text += "; use verify or rotate for several files"
	}
	return errors.New(text)
}

// notACommand returns advice for a name that is no command, but tells the user's intention. Otherwise, it returns an
// empty string.
func notACommand(name string) string {
	const wrapped = "statecrypt wrap -config " + fault.Config + " -- terraform "
	switch name {
	case "edit":
		return "run statecrypt decrypt -o FILE …, change FILE, then run statecrypt encrypt"
	case "state":
		return "run Terraform's command with wrap: " + wrapped + "state pull"
	case "lock":
		return "to see who holds the lock, run statecrypt inspect -backend; to encrypt a file, run statecrypt encrypt"
	case "unlock", "force-unlock":
		return "to release a lock, run " + wrapped + "force-unlock ID; to decrypt a file, run statecrypt decrypt"
	case "keygen", "genkey", "generate":
		return "make a key with another program: run age-keygen for age, or openssl rand -base64 32 for a passphrase"
	case "output":
		return "to print one output, run statecrypt show -output NAME FILE; to reduce a state to its outputs, run statecrypt outputs"
	}
	return ""
}

// noCommand returns the error message for an unknown command.
func noCommand(name string, names []string) string {
	const see, also = "; see statecrypt -h", "\nSee statecrypt -h"
	near := syntax.Suggest(name, names)
	if meant := notACommand(name); meant != "" {
		return fmt.Sprintf("there is no command %q; %s%s", name, meant, also)
	}
	for command, synonyms := range map[string]string{
		"decrypt": "open unseal cat view read reveal dec", "encrypt": "seal protect enc", "verify": "check validate test doctor",
		"rotate": "rekey convert migrate updatekeys reencrypt re-encrypt", "wrap": "exec run", "inspect": "info status stat",
		"version": "--version", "key-provider": "keyprovider kp",
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
			return fmt.Sprintf("the command begins with a dash; write statecrypt %s%s", names[at], also)
		}
		return fmt.Sprintf("the flag %s comes before the command; put flags after the command%s", cmdline.Shown(name, flagNames()), also)
	case name == "terraform" || name == "tofu":
		return fmt.Sprintf("there is no command %q; run it with wrap: statecrypt wrap -config %s -- %[1]s …", name, fault.Config)
	case cmdline.IsCommand(name) && near == "":
		return fmt.Sprintf("there is no command %q; run Terraform and OpenTofu with wrap: "+
			"statecrypt wrap -config %s -- terraform %[1]s", name, fault.Config)
	case recognize.Exists(name):
		return fmt.Sprintf("%s is a file, not a command; put a command before the file, for example statecrypt inspect FILE%s", shown(name), also)
	}
	if near != "" {
		return fmt.Sprintf("there is no command %q%s", name, near)
	}
	return fmt.Sprintf("there is no command %q%s%s", name, syntax.Configured(name, names), see)
}

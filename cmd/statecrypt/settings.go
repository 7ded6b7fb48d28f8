package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/words"
)

var errNoSettings = errors.New("there are no encryption settings; add -config FILE, or export TF_ENCRYPTION. An example of settings:" + `

  key_provider "pbkdf2" "main" {
    passphrase = var.passphrase
  }
  method "aes_gcm" "main" {
    keys = key_provider.pbkdf2.main
  }
  state {
    method = method.aes_gcm.main
  }

For plans, write plan instead of state. In a -config file, TF_VAR_passphrase sets var.passphrase; in TF_ENCRYPTION, write the
passphrase itself. Plaintext is accepted only if the method or a fallback is "unencrypted"`)

// settings returns the settings in a file or folder, with TF_ENCRYPTION merged over them.
func (c *call) settings(from string) (*encryption.Encryption, error) {
	code, err := c.code(from)
	if err != nil {
		return nil, err
	}
	if text, _ := world.Lookup(c.environ)("TF_ENCRYPTION"); recognize.Exists(strings.TrimSpace(text)) {
		return nil, errors.New("TF_ENCRYPTION is the path of a file; name the file with -config or STATECRYPT_CONFIG instead")
	}
	return encryption.Load(c.registry(), code, encryption.Environment(world.Lookup(c.environ)))
}

// hasEnvironment reports whether TF_ENCRYPTION is set to a text that is not blank.
func (c *call) hasEnvironment() bool {
	text, _ := world.Lookup(c.environ)("TF_ENCRYPTION")
	return strings.TrimSpace(text) != ""
}

// target returns the methods for states, or for plans with -plan.
func (c *call) target(from string) (encryption.Target, error) {
	enc, err := c.settings(from)
	if _, ok := errors.AsType[*unstable.NotSettingsError](err); ok && len(c.args) == 0 {
		err = fault.With(err, "check whether the variable after -config is empty, because -config took the next argument as its value")
	}
	if at := slices.IndexFunc(c.args, isSettings); err != nil && at >= 0 && c.Name != "wrap" { // these are for Terraform
		err = fault.With(err, fmt.Sprintf("check whether %s contains the settings. If it does, give that file to "+
			"-config, and the state or plan as an argument", shown(c.args[at])))
	}
	if err != nil {
		return encryption.Target{}, err
	}
	target := enc.State()
	if c.on("plan") {
		target = enc.Plan()
	}
	return target, c.misplaced(c.withoutSettings(c.check(enc, c.on("plan")), from))
}

// withoutSettings replaces errNoSettings with an error that names the file or folder without settings.
func (c *call) withoutSettings(err error, from string) error {
	if !errors.Is(err, errNoSettings) || from == "" {
		return err
	}
	blocks := "write the blocks key_provider, method and state "
	where := blocks + "there"
	if info, err := os.Stat(from); err == nil && info.IsDir() {
		where = blocks + "in a file outside the module's configuration, for example keys.hcl, and give that file instead of the folder"
		if c.Name != "wrap" { // with such a block, OpenTofu would encrypt the state a second time
			where += ". For OpenTofu, the encryption block of the terraform block can contain them, too"
		}
	}
	return fmt.Errorf("there are no encryption settings in %s; %s", shown(from), where)
}

// misplaced replaces errNoSettings with an error about settings among the arguments, if there are any.
func (c *call) misplaced(err error) error {
	switch at := slices.IndexFunc(c.args, isSettings); {
	case !errors.Is(err, errNoSettings):
	case slices.Contains(c.args, "-config"):
		return usageError("-config must come before the program; run statecrypt wrap -config " + c.behindConfig() + " -- terraform …")
	case at >= 0:
		return usageError(fmt.Sprintf("-config is missing before the file with the settings; run statecrypt %s -config %s …",
			c.Name, shown(c.args[at])))
	}
	return err
}

// behindConfig returns the argument that follows -config among the arguments, or its placeholder.
func (c *call) behindConfig() string {
	if at := slices.Index(c.args, "-config") + 1; at < len(c.args) {
		return shown(c.args[at])
	}
	return fault.Config
}

func isSettings(arg string) bool { return strings.HasSuffix(arg, ".hcl") }

// check returns an error if the target for states or plans cannot be used. It records probable mistakes, to
// be shown before the program first encrypts. Without any settings, check returns an error, whereas the
// library accepts plaintext in that case, as OpenTofu does.
func (c *call) check(enc *encryption.Encryption, plan bool) (err error) {
	target, beside, kind, other := enc.State(), enc.Plan(), "state", "plan"
	if plan {
		target, beside, kind, other = beside, target, other, kind
	}
	switch methods := beside.Methods(); {
	case len(target.Methods()) > 0:
		c.doubts, err = found(target)
		return err
	case len(methods) > 0:
		instead := ""
		switch {
		case kind == "plan":
			instead = "for a state, remove -plan. Otherwise, "
		case c.HasFlag("plan"):
			instead = "for a plan, add -plan. Otherwise, "
		}
		return fmt.Errorf("the settings have a %s block but no %s block; %sto use the same method for both, add %s { method = %s }",
			other, kind, instead, kind, methods[0])
	}
	for _, name := range []string{"TF_ENCRYPTION", "STATECRYPT_CONFIG"} {
		if text, set := world.Lookup(c.environ)(name); set && c.text("config") == "" && strings.TrimSpace(text) == "" {
			return fmt.Errorf("%s is empty, perhaps because the pipeline lacks a secret or a variable, and %w", name, errNoSettings)
		}
	}
	_, err = target.Encrypt(context.Background(), nil) // encrypts nothing, but returns the error about the settings
	if e, ok := fault.Find[fault.NoMethod](err); ok && len(e.Methods)+len(e.KeyProviders) > 0 {
		return err
	}
	return errNoSettings
}

// found returns the probable mistakes in a target, or an error if the target cannot open any file. If only
// some methods are unusable, that becomes an error only when a file needs them, which may never happen for a
// fallback.
func found(t encryption.Target) (doubts []encryption.Finding, err error) {
	for _, f := range t.Check() {
		if !f.Doubt {
			return nil, f.Err
		}
		doubts = append(doubts, f)
	}
	return doubts, nil
}

// code returns the layer of settings from -config or a similar flag. The user has chosen the file, so its
// commands may run. The function also records the TF_VAR_… variables that the settings use, and their backend
// block.
func (c *call) code(from string) (encryption.Layer, error) {
	arguments, err := c.variables()
	if err != nil {
		return nil, err
	}
	with := unstable.With(func(o *unstable.Options) {
		o.Arguments, o.Uses = arguments, c.uses
		o.Backends = states.Backends() // the file may also be used with wrap
		c.backend = nil                // forget the block of an earlier file
		o.Backend = func(block *unstable.Entry) { c.backend = block }
		o.FromEnvironment = c.configInVariable
	})
	if info, err := os.Stat(from); err == nil && info.IsDir() {
		return encryption.Module(from, encryption.VarEnvironment(c.environ), with), nil
	}
	var text []byte
	if from != "" {
		text, err = keyfile.ReadArgument(from)
		if err != nil && recognize.HoldsPrivateKey(from) {
			return nil, errors.New("-config requires a settings file, but its value is a private key; write the key to a file, and set the path " +
				"of that file in the settings")
		}
		if err != nil && from == c.text("config") && recognize.IsContent(from) {
			name := "-config"
			if c.configInVariable {
				name = "STATECRYPT_CONFIG"
			}
			return nil, fmt.Errorf("%s: %w, or set TF_ENCRYPTION to the content", name, err)
		}
		if err != nil && c.configInVariable {
			err = fmt.Errorf("STATECRYPT_CONFIG: %w", err)
		}
		if err != nil {
			return nil, err
		}
	}
	return encryption.Code(string(text), from, encryption.VarEnvironment(c.environ), with), nil
}

// uses records a variable that the settings use. If a file sets the variable, it prints the name of the file,
// because the user has not named it.
func (c *call) uses(name, file string) {
	c.used = append(c.used, "TF_VAR_"+name)
	if at := (setIn{name, file}); file != "" && !slices.Contains(c.noted, at) {
		c.noted = append(c.noted, at)
		c.say(yellow, "note:", fmt.Sprintf("var.%s is set in %s", name, file))
	}
}

// setIn is a variable in the settings, and the file that sets it.
type setIn struct{ name, file string }

// noteDoubts warns about likely mistakes in the encryption key, because a wrong key goes unnoticed until
// someone else opens the file.
func (c *call) noteDoubts() {
	if c.text("config") != "" && c.hasEnvironment() {
		c.say(yellow, "note:", "TF_ENCRYPTION is set, and its settings override the same settings of -config")
	}
	for _, doubt := range c.doubts {
		c.say(yellow, "note:", words.Doubt(doubt))
	}
}

// emptied returns a line that names the variables without content which the settings use, if err is about a setting.
// It returns an empty string if there are none.
func (c *call) emptied(err error) string {
	if _, ok := errors.AsType[*attr.Error](err); !ok {
		return ""
	}
	var empty []string
	for _, name := range slices.Compact(slices.Sorted(slices.Values(c.used))) {
		value, isSet := world.Lookup(c.environ)(name)
		for _, v := range c.given {
			if text, ok := strings.CutPrefix(v.text, strings.TrimPrefix(name, "TF_VAR_")+"="); ok && !v.isFile {
				name, value, isSet = "-var "+strings.TrimPrefix(name, "TF_VAR_"), text, true
			}
		}
		if isSet && value == "" {
			empty = append(empty, name)
		}
	}
	switch len(empty) {
	case 0:
		return ""
	case 1:
		return "\n" + empty[0] + " is empty."
	}
	return "\n" + strings.Join(empty, ", ") + " are empty."
}

// noteUnused prints a note about a -var that has no effect. It does not repeat the name, which may be part of
// a secret that was meant for another place.
func (c *call) noteUnused() {
	for _, v := range c.given {
		name, _, _ := strings.Cut(v.text, "=")
		isOfFile := func(at setIn) bool { return at.file == v.text }
		if c.Name == "wrap" && v.isFile && !slices.ContainsFunc(c.noted, isOfFile) { // Terraform has the same flag
			c.say(yellow, "note:", "the settings use no variable of a -var-file"+c.behind("-var-file"))
		}
		if v.isFile || slices.Contains(c.used, "TF_VAR_"+name) {
			continue
		}
		if c.text("config") == "" && c.hasEnvironment() {
			c.say(yellow, "note:", "a -var has no effect, because the settings in TF_ENCRYPTION cannot use variables")
			return
		}
		uses := "no variables"
		if len(c.used) > 0 {
			uses = strings.ReplaceAll(strings.Join(slices.Compact(slices.Sorted(slices.Values(c.used))), ", "), "TF_VAR_", "var.")
		}
		c.say(yellow, "note:", "the settings do not use the variable that a -var sets; they use "+uses+c.behind("-var"))
	}
}

// behind returns advice on where to put a flag that both wrap and Terraform have. It returns an empty string
// for other commands.
func (c *call) behind(flag string) string {
	if c.Name != "wrap" {
		return ""
	}
	return ". If the flag is for Terraform, put it after the subcommand: statecrypt wrap -- terraform SUBCOMMAND " + flag + " …"
}

// variables returns -var and -var-file as Terraform arguments. Its errors do not repeat any part of a value.
func (c *call) variables() (arguments []string, err error) {
	for _, v := range c.given {
		name, _, ok := strings.Cut(v.text, "=")
		switch {
		case v.isFile:
			arguments = append(arguments, "-var-file="+v.text)
		case !ok || name == "":
			return nil, usageError("a -var does not have the form NAME=VALUE; write, for example, -var 'passphrase=…'")
		case strings.TrimSpace(name) != name:
			return nil, usageError("the name in a -var has a space beside it; write -var NAME=VALUE without spaces around the name")
		default:
			arguments = append(arguments, "-var="+v.text)
		}
	}
	return arguments, nil
}

// given is the value of a -var or -var-file flag.
type given struct {
	text   string
	isFile bool
}

// Package words returns error messages for users of statecrypt and of its wrap command, who write settings in OpenTofu
// syntax into the file named by -config.
package words

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
)

// voice returns the wording for all statecrypt errors.
func voice() fault.Voice {
	return fault.Voice{Words: map[string]string{"settings": "the -config file"}}
}

// Command is the statecrypt command that the user called.
type Command struct {
	Name     string // for example, decrypt
	Settings string // the name of the settings file, or ""

	HasPlan bool // whether the command has the -plan flag
	Plan    bool // whether the -plan flag is set

	Backend bool // whether the command works on the state in the backend

	VarBehind bool // whether a -var flag follows the program that wrap runs
}

// Text returns the error message for the user of the command.
func (c Command) Text(err error) string { return fault.Name(c.unnamed(err), c.Settings) }

// unnamed returns the error message without the name of the settings file.
func (c Command) unnamed(err error) string {
	text := voice().Text(err)
	if errors.Is(err, encryption.ErrOtherKind) && c.HasPlan {
		return text + c.otherKind(err)
	}
	text += variableOfText(err)
	if fault.Has[fault.NoValue](err) && c.VarBehind {
		text += "\nA -var after the program is for Terraform. For the settings, put -var before the program: " +
			"statecrypt wrap -var 'NAME=…' -- terraform …"
	}
	if fault.Has[fault.OnlyEnvironment](err) {
		text += "\nIt runs only if the flag -config names the file with the settings: statecrypt " + c.Name + " -config " + fault.Config + " …"
	}
	// rotate has its own messages, and wrap refuses plans that it did not make.
	if plain, ok := fault.Find[fault.Plaintext](err); ok && c.Name != "rotate" && (c.Name != "wrap" || !plain.Plan) {
		command := "statecrypt encrypt"
		switch {
		case plain.Plan:
			command += " -plan"
		case c.Backend:
			command = "statecrypt wrap -config " + fault.Config + " -encrypt-existing -- terraform init"
		}
		if c.Name == "decrypt" {
			text += "\nThe file is not encrypted, so you can read it as it is. To encrypt it, run " + command + "."
		} else {
			text += "\nTo encrypt it, run " + command + "."
		}
	}
	switch advice := keyOfText(err); {
	case c.Name == "rotate" && advice != "":
		text += "\nCheck the keys, and that this is the right file. If its key was changed in the meantime, name the settings with " +
			"that key in -from."
	case c.Name != "encrypt":
		text += advice
	}
	return text
}

// Usage returns the message about a mistake in a command line, and names the command that shows help.
func Usage(err error, command string) string {
	see := "; see"
	switch text := err.Error(); {
	case strings.HasSuffix(text, "?"):
		see = " See"
	case strings.Contains(text, "; "): // there is advice already
		see = "\nSee"
	}
	return fmt.Sprintf("%v%s statecrypt %s -h", err, see, command)
}

// otherKind returns the advice to add or remove -plan. If the error has several attempts, each is on its own line.
// The advice is not only about the last attempt, so it also gets its own line.
func (c Command) otherKind(err error) string {
	kind, advice := "plan", "add -plan"
	if c.Plan {
		kind, advice = "state", "remove -plan"
	}
	if failed, ok := errors.AsType[*encryption.Error](err); ok && len(failed.Attempts) > 0 {
		return fmt.Sprintf("\nThe file is a %s: %s.", kind, advice)
	}
	return "; " + advice
}

// State returns the message for an error about the state in wrap's backend.
func State(err error) string {
	text := Seal(err) + keyOfText(err)
	if errors.Is(err, encryption.ErrOtherKind) {
		text += "; check the address"
	}
	return text
}

// Seal returns the message for an error about a state that wrap encrypts.
func Seal(err error) string { return voice().Text(err) + variableOfText(err) }

// Doubt returns a message that names a key setting and says why it is probably a mistake.
func Doubt(f encryption.Finding) string {
	setting := f.Err.Attr
	if f.Err.Address != "" {
		setting = fmt.Sprintf("the %s of %s", f.Err.Attr, f.Err.Address)
	}
	return fmt.Sprintf("%s %v", setting, f.Err.Err)
}

// variableOfText returns advice on setting a variable if err says that the variable has no value. Otherwise, it returns
// an empty string.
func variableOfText(err error) string {
	variable, ok := fault.Find[fault.NoValue](err)
	at, isAt := errors.AsType[*attr.Error](err)
	switch {
	case !ok:
		return ""
	case isAt && at.Pos.File == "TF_ENCRYPTION":
		return "\nIn TF_ENCRYPTION, write the value itself; var.NAME works only in a -config file."
	case variable.Name == "":
		return ""
	}
	return fmt.Sprintf("\nSet the environment variable TF_VAR_%s, or use -var or -var-file of statecrypt.", variable.Name)
}

// keyOfText returns advice for a file for which no method has the key. It returns an empty string if a setting is
// probably a mistake, because the error already names that mistake.
func keyOfText(err error) string {
	failed, ok := errors.AsType[*encryption.Error](err)
	if !ok || failed.Step != encryption.StepDecrypt || !errors.Is(err, encryption.ErrNoKey) ||
		slices.ContainsFunc(failed.Attempts, func(a encryption.Attempt) bool { return fault.Has[fault.Suspect](a.Err) }) {
		return ""
	}
	return "\nCheck the key, and that this is the right file. If the key has changed since the file was written, " +
		"add the old key as a fallback."
}

package explain

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fact"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// Command is whoever calls the program statecrypt, and writes OpenTofu's text.
type Command struct {
	Name string // of the command, such as decrypt

	HasPlan bool // it has the flag -plan
	Plan    bool // which is set

	VarBehind bool // there is a -var behind the program that wrap runs
}

func (Command) beside(f fact.Fact) string {
	switch f := f.(type) {
	case fact.NoMethod:
		return "; " + methodInText(f)
	case fact.NotConfigured:
		return inText(f)
	}
	return ""
}

// inText is about what is not configured, and nothing else that could be meant. In text, a
// method for plaintext has a block like any other.
func inText(f fact.NotConfigured) string {
	if f.Alone || isUnencrypted(f) {
		return "; add its block, or correct the name"
	}
	return ""
}

func isUnencrypted(f fact.NotConfigured) bool {
	return strings.HasPrefix(f.Address, "method."+syntax.Unencrypted+".")
}

func (c Command) whole(err error, text string) string {
	if errors.Is(err, encryption.ErrOtherKind) && c.HasPlan {
		return text + c.otherKind(err)
	}
	text += variableOfText(err)
	if fact.Has[fact.NoValue](err) && c.VarBehind {
		text += "\nA -var behind the program is Terraform's; the settings have those before it: statecrypt wrap -var 'NAME=…' -- terraform plan"
	}
	if fact.Has[fact.OnlyEnvironment](err) {
		text += "\nSettings in a file of -config may run it."
	}
	// What rotate says is its own, and wrap refuses a plan that it did not make.
	if plain, ok := fact.Find[fact.Plaintext](err); ok && c.Name != "rotate" && (c.Name != "wrap" || !plain.Plan) {
		command := "statecrypt encrypt"
		if plain.Plan {
			command += " -plan"
		}
		if c.Name == "decrypt" {
			text += "\nIt is not encrypted, so it can be read as it is; " + command + " encrypts it."
		} else {
			text += "\nTo encrypt it, use " + command + "."
		}
	}
	if c.Name != "encrypt" {
		text += keyOfText(err)
	}
	return text
}

// Usage is the text of a mistake in what was typed, and where help is.
func Usage(err error, command string) string {
	see := "; see"
	if strings.HasSuffix(err.Error(), "?") {
		see = " See"
	}
	return fmt.Sprintf("%v%s statecrypt %s -h", err, see, command)
}

// otherKind is about a plan in the place of a state, or the other way round. An error with
// attempts, each of which has a line, is not about the last of them.
func (c Command) otherKind(err error) string {
	kind, advice := "plan", "add -plan"
	if c.Plan {
		kind, advice = "state", "leave out -plan"
	}
	if failed, ok := errors.AsType[*encryption.Error](err); ok && len(failed.Attempts) > 0 {
		return fmt.Sprintf("\nThe file is a %s: %s.", kind, advice)
	}
	return "; " + advice
}

// Wrap is whoever runs Terraform with statecrypt wrap, and reads an error about the state in
// its backend.
type Wrap struct {
	Seals bool // the state was not to be opened
}

func (Wrap) beside(f fact.Fact) string { return Command{}.beside(f) } // the settings are text as well

func (w Wrap) whole(err error, text string) string {
	text += variableOfText(err)
	if w.Seals {
		return text
	}
	text += keyOfText(err)
	if errors.Is(err, encryption.ErrOtherKind) {
		text += "; check the address"
	}
	return text
}

// variableOfText says how to set a variable of the settings, if err is about one.
func variableOfText(err error) string {
	variable, ok := fact.Find[fact.NoValue](err)
	at, isAt := errors.AsType[*attr.Error](err)
	switch {
	case !ok:
		return ""
	case isAt && at.Pos.File == "TF_ENCRYPTION":
		return "\nIn TF_ENCRYPTION, write the value itself; var.NAME is for the file of -config."
	case variable.Name == "":
		return ""
	}
	return fmt.Sprintf("\nSet it with the environment variable TF_VAR_%s, or -var or -var-file of statecrypt.", variable.Name)
}

// keyOfText says what to do about a file that no method has the key for, unless something
// is odd, which says more.
func keyOfText(err error) string {
	failed := noKey(err)
	if failed == nil || slices.ContainsFunc(failed.Attempts, func(a encryption.Attempt) bool { return isSuspected(a.Err) }) {
		return ""
	}
	return "\nCheck the key, and whether this is the right file. If the key was changed after the file was written, " +
		"add the old one as a fallback."
}

// methodInText says what to add to OpenTofu's text.
func methodInText(e fact.NoMethod) string {
	target := "state"
	if e.Plan {
		target = "plan"
	}
	chosen := func(methods ...string) string {
		switch {
		case len(e.Selected) > 0 && e.In == "":
			return fmt.Sprintf("set method = %s on the data source, or add a fallback with it", join(methods, strconv.Quote))
		case len(e.Selected) > 0: // a second block would be an error
			return fmt.Sprintf("let %s have method = %s, or a fallback with it", e.In, strings.Join(methods, " or "))
		}
		return "add " + join(methods, func(method string) string { return fmt.Sprintf("%s { method = %s }", target, method) })
	}
	switch {
	case len(e.Methods) > 0:
		return chosen(e.Methods...)
	case e.Format != "":
		return fmt.Sprintf("add method %q \"main\" {}, with its settings in the braces, and %s", e.Format, chosen("method."+e.Format+".main"))
	case len(e.KeyProviders) == 0:
		return fmt.Sprintf("add its key provider, such as key_provider \"pbkdf2\" \"main\" { passphrase = var.passphrase }, a method with its "+
			"key, such as method \"aes_gcm\" \"main\" { keys = key_provider.pbkdf2.main }, and %s", chosen("method.aes_gcm.main"))
	}
	return fmt.Sprintf("add method \"aes_gcm\" \"main\" { keys = %s } and %s", e.KeyProviders[0], chosen("method.aes_gcm.main"))
}

// join lists what to choose from.
func join(choices []string, text func(string) string) string {
	out := make([]string, len(choices))
	for i, c := range choices {
		out[i] = text(c)
	}
	return strings.Join(out, " or ")
}

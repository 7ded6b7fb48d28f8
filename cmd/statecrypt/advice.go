package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/missing"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
)

// advised is the text of an error, with what users of the command do about it: they
// write OpenTofu's text.
func (c *call) advised(err error) string {
	text := err.Error()
	if errors.Is(err, encryption.ErrOtherKind) && slices.Contains(strings.Fields(c.flags), "plan") {
		return text + c.adviseKind(text)
	}
	text += wrap.AdviseVariable(err)
	if _, ok := errors.AsType[*missing.Variable](err); ok && c.name == "wrap" && slices.ContainsFunc(c.args, isVar) {
		text += "\nA -var behind the program is Terraform's; the settings have those before it: statecrypt wrap -var 'NAME=…' -- terraform plan"
	}
	if errors.Is(err, attr.ErrCommand) {
		text += "\nSettings in a file of -config may run it."
	}
	if e, ok := errors.AsType[*missing.Method](err); ok {
		text = strings.Replace(text, e.Error(), e.Error()+"; "+adviseMethod(e), 1)
	}
	isPlan := strings.Contains(text, encryption.KindPlan.String())
	// What rotate says is its own, and a plan that wrap did not make is of no use to it.
	if errors.Is(err, encryption.ErrPlaintext) && c.name != "rotate" && (c.name != "wrap" || !isPlan) {
		command := "statecrypt encrypt"
		if isPlan {
			command += " -plan"
		}
		if c.name == "decrypt" {
			text += "\nIt is not encrypted, so it can be read as it is; " + command + " encrypts it."
		} else {
			text += "\nTo encrypt it, use " + command + "."
		}
	}
	if c.name != "encrypt" {
		text += wrap.AdviseKey(err)
	}
	return text
}

func isVar(arg string) bool {
	return strings.HasPrefix(strings.TrimLeft(arg, "-"), "var") && strings.HasPrefix(arg, "-")
}

// adviseKind is about a plan in the place of a state, or the other way round. An error of
// several lines is not about the last of them.
func (c *call) adviseKind(text string) string {
	kind, advice := "plan", "add -plan"
	if c.plan {
		kind, advice = "state", "leave out -plan"
	}
	if strings.Contains(text, "\n") {
		return fmt.Sprintf("\nThe file is a %s: %s.", kind, advice)
	}
	return "; " + advice
}

func adviseMethod(e *missing.Method) string {
	block := "state"
	if e.Plan {
		block = "plan"
	}
	chosen := func(methods ...string) string {
		if len(e.Selected) > 0 { // a second block would be an error
			return fmt.Sprintf("let %s have method = %s, or a fallback with it", block, strings.Join(methods, " or "))
		}
		for i, method := range methods {
			methods[i] = fmt.Sprintf("%s { method = %s }", block, method)
		}
		return "add " + strings.Join(methods, " or ")
	}
	switch {
	case len(e.Methods) > 0:
		return chosen(slices.Clone(e.Methods)...)
	case e.Format != "":
		return fmt.Sprintf("add method %q \"main\" {}, with its settings in the braces, and %s", e.Format, chosen("method."+e.Format+".main"))
	case len(e.KeyProviders) == 0:
		return fmt.Sprintf("add its key provider, such as key_provider \"pbkdf2\" \"main\" { passphrase = var.passphrase }, a method with its "+
			"key, such as method \"aes_gcm\" \"main\" { keys = key_provider.pbkdf2.main }, and %s", chosen("method.aes_gcm.main"))
	}
	return fmt.Sprintf("add method \"aes_gcm\" \"main\" { keys = %s } and %s", e.KeyProviders[0], chosen("method.aes_gcm.main"))
}

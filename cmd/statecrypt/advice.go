package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
)

// advised is the text of an error, with what users of the command do about it: they
// write OpenTofu's text.
func (c *call) advised(err error) string {
	text := err.Error()
	switch {
	case errors.Is(err, encryption.ErrOtherKind) && c.plan:
		text += "; leave out -plan"
	case errors.Is(err, encryption.ErrOtherKind) && slices.Contains(strings.Fields(c.flags), "plan"):
		text += "; add -plan"
	}
	if e, ok := errors.AsType[*encryption.NotConfiguredError](err); ok {
		text = strings.Replace(text, e.Error(), e.Error()+"; add "+adviseMethod(e), 1)
	}
	if errors.Is(err, encryption.ErrPlaintext) && c.name != "rotate" { // which has words of its own
		text += "\nTo encrypt it, use statecrypt encrypt."
	}
	if errors.Is(err, encryption.ErrNoKey) {
		text += "\nCheck the key, and whether this is the right file. If the key was changed after the file was written, " +
			"add the old one as a fallback."
	}
	return text
}

func adviseMethod(e *encryption.NotConfiguredError) string {
	block := "state"
	if e.Plan {
		block = "plan"
	}
	switch {
	case len(e.Methods) > 0:
		lines := make([]string, len(e.Methods))
		for i, m := range e.Methods {
			lines[i] = fmt.Sprintf("%s { method = %s }", block, m.Address)
		}
		return strings.Join(lines, " or ")
	case e.Format != "":
		return fmt.Sprintf("method %q \"main\" {}, with its settings in the braces, and %s { method = method.%[1]s.main }", e.Format, block)
	case len(e.KeyProviders) == 0:
		return fmt.Sprintf("its key provider, such as key_provider \"pbkdf2\" \"main\" { passphrase = var.passphrase }, a method with its "+
			"key, such as method \"aes_gcm\" \"main\" { keys = key_provider.pbkdf2.main }, and %s { method = method.aes_gcm.main }", block)
	}
	return fmt.Sprintf("method \"aes_gcm\" \"main\" { keys = %s } and %s { method = method.aes_gcm.main }",
		e.KeyProviders[0].Address, block)
}

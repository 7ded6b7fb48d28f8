package fault

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// These facts have no default wording: programs only base decisions on them, or have their own wording.
func (NoCredentials) advice() string   { return "" }
func (OnlyEnvironment) advice() string { return "" }
func (NoIdentity) advice() string      { return "" }
func (Lasting) advice() string         { return "" }
func (NoValue) advice() string         { return "" }
func (Plaintext) advice() string       { return "" }

// advice returns a sentence of its own, because the description has its own advice.
func (s Suspect) advice() string {
	return ". " + strings.ToUpper(s.Setting[:1]) + s.Setting[1:] + " " + s.What
}

func (f NoKeyProvider) advice() string {
	add := "add that key provider and a method that uses it, and select this method"
	if f.OfAge {
		add = "add a key provider of the kind age with identity_files, and set the argument keys of the method to it"
	}
	return fmt.Sprintf(". The key provider that encrypted the file is missing from the settings%s; %s", f.Stored, add)
}

// IsUnencrypted reports whether the address is the address of a method of kind unencrypted.
func (f NotConfigured) IsUnencrypted() bool {
	return strings.HasPrefix(f.Address, "method."+syntax.Unencrypted+".")
}

// advice returns the advice for settings in text form, where a method for plaintext needs a block like any
// other.
func (f NotConfigured) advice() string {
	if f.Alone || f.IsUnencrypted() {
		return "add its block, or correct the name"
	}
	return ""
}

func (f NoMethod) advice() string { return f.InText() }

// InText returns advice on what to add to settings in OpenTofu's text form.
func (f NoMethod) InText() string {
	target := "state"
	if f.Plan {
		target = "plan"
	}
	chosen := func(methods ...string) string {
		switch {
		case len(f.Selected) > 0 && f.In == "":
			return fmt.Sprintf("set method = %s on the data source, or add a fallback with this method", syntax.Or(methods, strconv.Quote))
		case len(f.Selected) > 0: // a second block would be an error
			return fmt.Sprintf("in the %s block, set method = %s, or add a fallback with this method", f.In, strings.Join(methods, " or "))
		}
		return "add " + syntax.Or(methods, func(method string) string { return fmt.Sprintf("%s { method = %s }", target, method) })
	}
	switch {
	case len(f.Methods) > 0:
		return chosen(f.Methods...)
	case f.Format != "":
		return fmt.Sprintf("add method %q \"main\" {} with its settings in the braces, and %s", f.Format, chosen("method."+f.Format+".main"))
	case len(f.KeyProviders) == 0:
		return fmt.Sprintf("add a key provider and a method, for example key_provider \"pbkdf2\" \"main\" { passphrase = "+
			"var.passphrase } and method \"aes_gcm\" \"main\" { keys = key_provider.pbkdf2.main }. Then %s", chosen("method.aes_gcm.main"))
	}
	return fmt.Sprintf("add method \"aes_gcm\" \"main\" { keys = %s } and %s", f.KeyProviders[0], chosen("method.aes_gcm.main"))
}

func (f NoBlock) advice() string { return ":\n" + f.Lines() }

// Lines returns the block with each brace and argument on a separate line, because HCL accepts nested blocks
// only in this form. The lines are indented, because the CLIs wrap lines that are not.
func (f NoBlock) Lines() string {
	var b strings.Builder
	line := func(depth int, text string) { fmt.Fprintf(&b, "\n%s%s", strings.Repeat("  ", depth+1), text) }
	names := strings.Split(f.Path, ".")
	for depth, name := range names {
		line(depth, name+" {")
	}
	width := 0
	for _, a := range f.Arguments {
		name, _, _ := strings.Cut(a, " = ")
		width = max(width, len(name))
	}
	for _, a := range f.Arguments {
		name, value, _ := strings.Cut(a, " = ")
		line(len(names), fmt.Sprintf("%-*s = %s", width, name, value))
	}
	for depth := len(names) - 1; depth >= 0; depth-- {
		line(depth, "}")
	}
	return b.String()
}

package encryption

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

// withHints adds to the error of a method that had no key what the likely mistakes are:
// it is the key of another key provider, or a passphrase has something around it, or is
// the path of a file.
func (e *Encryption) withHints(err error, c candidate, env *envelope) error {
	if !errors.Is(err, ErrNoKey) {
		return err
	}
	for _, hint := range e.oddities(c) {
		err = fmt.Errorf("%w; the %s", err, hint)
	}
	if env == nil || len(env.Meta) == 0 || e.belongs(env) {
		return err
	}
	return fmt.Errorf("%w; the settings have none of the key providers that the file was sealed with%s", err, env.describeKeys())
}

// belongs reports whether a configured key provider may have stored something in the
// file.
func (e *Encryption) belongs(env *envelope) bool {
	for name, doc := range env.Meta {
		if e.claimed(name) {
			return true
		}
		for address := range e.config.KeyProviders {
			provider, err := e.keyProvider(address)
			if r, ok := provider.KeyProvider.(Recognizer); err != nil || ok && r.Recognizes(doc) {
				return true
			}
		}
	}
	return false
}

// oddities describes the settings of a method, and of the key providers that it builds
// on, that are probably not what was meant.
func (e *Encryption) oddities(c candidate) (hints []string) {
	entries := []*attr.Entry{e.config.Methods[c.address]}
	addresses := slices.Clone(c.references)
	for i := 0; i < len(addresses); i++ {
		entries = append(entries, e.config.KeyProviders[addresses[i]])
		provider, _ := e.keyProvider(addresses[i]) // nothing was asked that cannot be built
		for _, upstream := range provider.references {
			if !slices.Contains(addresses, upstream) {
				addresses = append(addresses, upstream)
			}
		}
	}
	for _, entry := range entries {
		if entry == nil { // a kind without settings, or a literal key
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(entry.Settings)) {
			if odd := oddity(name, entry.Settings[name].Value); odd != "" {
				hints = append(hints, fmt.Sprintf("%s of %s %s", name, entry.Address, odd))
			}
		}
	}
	return hints
}

// oddity says what is odd about a text: that it ends with its only line break, that it
// has a space or quotation marks around it, or that a passphrase is a path. It is "" for
// none.
func oddity(name string, v cty.Value) string {
	if v == cty.NilVal || v.IsMarked() || v.Type() != cty.String || !v.IsKnown() || v.IsNull() || v.AsString() == "" {
		return ""
	}
	text := v.AsString()
	first, last, line := text[0], text[len(text)-1], strings.Index(text, "\n")
	switch {
	case line > 0 && line == len(text)-1:
		return "ends with a line break, as files do: trimspace(…) removes it"
	case line >= 0:
	case first == ' ' || last == ' ':
		return "begins or ends with a space, which is part of it"
	case len(text) > 1 && first == last && (first == '"' || first == '\''):
		return "has quotation marks around it, which are part of it"
	case name == "passphrase" && isPath(text):
		return "looks like the path of a file: file(…) reads what is in it"
	}
	return ""
}

func isPath(text string) bool {
	return strings.HasPrefix(text, "/") || strings.HasPrefix(text, "~/") || strings.HasPrefix(text, "./")
}

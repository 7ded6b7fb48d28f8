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
// it is the key of another key provider, or a file's line break is part of a passphrase.
func (e *Encryption) withHints(err error, c candidate, env *envelope) error {
	if !errors.Is(err, ErrNoKey) {
		return err
	}
	for _, where := range e.lineBreaks(c) {
		err = fmt.Errorf("%w; the %s ends with a line break, as files do: trimspace(…) removes it", err, where)
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

// lineBreaks names the settings of a method, and of the key providers that it builds
// on, that are one line and its end.
func (e *Encryption) lineBreaks(c candidate) (places []string) {
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
			if isOneLine(entry.Settings[name].Value) {
				places = append(places, fmt.Sprintf("%s of %s", name, entry.Address))
			}
		}
	}
	return places
}

// isOneLine reports whether v is a text that ends with its only line break.
func isOneLine(v cty.Value) bool {
	if v == cty.NilVal || v.IsMarked() || v.Type() != cty.String || !v.IsKnown() || v.IsNull() {
		return false
	}
	i := strings.Index(v.AsString(), "\n")
	return i > 0 && i == len(v.AsString())-1
}

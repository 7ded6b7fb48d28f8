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
func (e *Encryption) withHints(err error, address string, env *envelope) error {
	if !errors.Is(err, ErrNoKey) {
		return err
	}
	if entry := e.config.Methods[address]; entry != nil {
		for _, where := range e.lineBreaks(entry) {
			err = fmt.Errorf("%w; the %s ends with a line break, as files do: trimspace(…) removes it", err, where)
		}
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

// lineBreaks names the settings of an entry, and of what it builds on, that are one
// line and its end.
func (e *Encryption) lineBreaks(entry *attr.Entry) (places []string) {
	for _, name := range slices.Sorted(maps.Keys(entry.Settings)) {
		v, _ := entry.Settings[name].Value.Unmark()
		if v == cty.NilVal || v.Type() != cty.String || !v.IsKnown() || v.IsNull() {
			continue
		}
		if upstream, ok := e.config.KeyProviders[v.AsString()]; ok {
			places = append(places, e.lineBreaks(upstream)...)
		} else if i := strings.Index(v.AsString(), "\n"); i > 0 && i == len(v.AsString())-1 {
			places = append(places, fmt.Sprintf("%s of %s", name, entry.Address))
		}
	}
	return places
}

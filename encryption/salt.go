package encryption

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
)

// Separate returns a copy of the target that uses a new salt, and therefore a new key, for each
// file it seals.
func (t Target) Separate() Target {
	t.separate = true
	return t
}

// Prepare starts to derive the key with which a salted target seals, and returns at once; see
// [Target.IsSalted]. A program can read its files meanwhile, and then waits less when it seals the
// first one.
func (t Target) Prepare(ctx context.Context) {
	providers, err := t.salters()
	if err != nil || t.separate || ctx == nil {
		return
	}
	for address := range providers {
		keys := &newKeys{encryption: t.encryption, made: map[string][]byte{}, meta: map[string][]byte{}}
		go func() { _, _ = keys.key(ctx, address) }() // sealing a file reports the error again
	}
}

// IsSalted reports whether the target seals only with keys that a [driver.Salter] derives from the
// settings. Such a key can always be made, because no service, program or file is needed.
func (t Target) IsSalted() bool {
	providers, err := t.salters()
	return err == nil && len(providers) > 0
}

// salters returns the key providers of the primary method, by address, if the target is salted.
// Otherwise, it returns nil.
func (t Target) salters() (map[string]keyProvider, error) {
	if t.check() != nil || len(t.methods) == 0 {
		return nil, nil
	}
	m, err := t.encryption.methods[t.methods[0]]()
	if err != nil || m.then != "" {
		return nil, err
	}
	providers := map[string]keyProvider{}
	for _, address := range m.references {
		if _, _, literal := t.encryption.config.Literal(address); literal {
			return nil, nil
		}
		provider, err := t.encryption.keyProvider(address)
		if _, ok := provider.KeyProvider.(driver.Salter); err != nil || !ok || len(provider.references) > 0 {
			return nil, err
		}
		providers[address] = provider
	}
	return providers, nil
}

// Rehearsal returns a target that shows, before a change, whether the file can be sealed after the
// change. It seals like the target that opened the file, with one exception: if that target is
// salted and would derive the next key with the same parameters, the rehearsal reuses the key of
// the opened file, which is already cached. See [Target.IsSalted]. A file sealed in a rehearsal
// must not be kept, because it shares the salt of the opened file.
func (o *Opened) Rehearsal() Target {
	t := o.target
	if !o.Encrypted || o.UsedFallback {
		return t
	}
	providers, err := t.salters()
	if err != nil || len(providers) == 0 {
		return t
	}
	keys := fileKeys{encryption: t.encryption, meta: o.meta, methods: t.methods}
	stored := map[string]json.RawMessage{}
	for address, provider := range providers {
		document := keys.stored(address, provider)
		if salter, ok := provider.KeyProvider.(driver.Salter); !ok || !salter.IsCurrent(document) {
			return t
		}
		stored[address] = document
	}
	t.rehearses = stored
	return t
}

// MayShareKey reports whether the primary method of the target may open a file that a method of
// other opens. It returns false only if the primary method needs a passphrase that no method of
// other has. Deriving a key would then be in vain.
func (t Target) MayShareKey(other Target) bool {
	own, ok := t.passphrases(0)
	if !ok || len(own) == 0 {
		return true
	}
	for i := range other.methods {
		others, ok := other.passphrases(i)
		if !ok || slices.ContainsFunc(others, func(p string) bool { return slices.Contains(own, p) }) {
			return true
		}
	}
	return false
}

// passphrases returns the passphrases of a method's key providers. It returns false if the method's
// key may also depend on something else.
func (t Target) passphrases(i int) (found []string, known bool) {
	if t.check() != nil || i >= len(t.methods) {
		return nil, false
	}
	m, err := t.encryption.methods[t.methods[i]]()
	if err != nil || m.then != "" {
		return nil, false
	}
	for _, address := range m.references {
		provider, err := t.encryption.keyProvider(address)
		if err != nil || len(provider.references) > 0 {
			return nil, false
		}
		for _, a := range t.encryption.keyKinds[t.encryption.config.KeyProviders[address].Kind].Attrs {
			if a.Form == attr.Passphrase {
				found = append(found, provider.values.String(a.Name))
			}
		}
	}
	return found, true
}

// salted returns a key derived from a salt, and the document that contains the salt. All files that
// the Encryption seals get the same document, unless the target is separate or is a rehearsal.
func (k *newKeys) salted(ctx context.Context, address string, provider keyProvider, salter driver.Salter) ([]byte, json.RawMessage, error) {
	upstream := map[string][]byte{}
	for _, reference := range provider.references {
		key, err := k.key(ctx, reference)
		if err != nil {
			return nil, nil, err
		}
		upstream[reference] = key
	}
	document, rehearsed := k.rehearses[address]
	switch {
	case rehearsed:
	case k.separate:
		document = salter.NewDocument()
	default:
		document = provider.document()
	}
	file := fileKeys{encryption: k.encryption, meta: maps.Clone(k.meta)}
	file.meta[provider.metadataKey] = document
	identity, err := file.identity(address, nil)
	if err != nil {
		return nil, nil, err
	}
	key, err := k.encryption.derived.Do(ctx, identity, func(ctx context.Context) ([]byte, error) {
		return provider.Key(ctx, func(_ context.Context, reference string) ([]byte, error) {
			return bytes.Clone(upstream[reference]), nil
		}, document)
	})
	return key, document, err
}

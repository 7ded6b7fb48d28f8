package encryption

import (
	"errors"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/mark"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fact"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
)

// withFacts is the error of a method that did not open a file, beside what is known about
// it. Of the envelope, which has the whole file, only the metadata is kept.
func (t Target) withFacts(err error, c candidate, env *envelope) error {
	if env != nil {
		env = &envelope{Meta: env.Meta}
	}
	return fact.Later(err, func() []fact.Fact { return t.facts(err, c, env) })
}

// facts are what is odd in the settings of a method that did not open a file and, if it had
// no key, why that may be another one.
func (t Target) facts(err error, c candidate, env *envelope) (facts []fact.Fact) {
	e := t.encryption
	facts = e.suspects(c)
	if errors.Is(err, ErrNoKey) {
		return append(facts, t.factsOfKey(errors.Is(err, mark.ErrNothingStored), c, env)...)
	}
	isMissing := func(address string) bool { return e.keyProviders[address] == nil }
	if env != nil && len(env.Meta) > 0 && slices.ContainsFunc(c.references, isMissing) && !e.belongs(env) {
		facts = append(facts, env.noKeyProvider())
	}
	return facts
}

// factsOfKey are why another key may be the right one. Nothing is known of a key provider
// of which the file stores nothing.
func (t Target) factsOfKey(nothing bool, c candidate, env *envelope) (facts []fact.Fact) {
	e := t.encryption
	if again := slices.DeleteFunc(t.Methods(), func(m string) bool { return m != c.address }); len(again) > 1 {
		facts = append(facts, fact.Repeated)
	}
	if t.pos.File == "TF_ENCRYPTION" && e.isLayered() {
		facts = append(facts, fact.Layered)
	}
	if env == nil {
		return facts
	}
	other := e.other(env)
	own, user := slices.Index(t.methods, c.address), t.user(other)
	switch empty := len(env.Meta) == 0; {
	case empty && nothing:
		facts = append(facts, fact.Keyless)
	case empty:
	case !e.belongs(env):
		facts = append(facts, env.noKeyProvider())
	case nothing && own >= 0 && user >= own: // it is a fallback of this one, and has the name that it had
	case nothing && other != "":
		facts = append(facts, fact.KeyElsewhere{Address: other, Selected: user >= 0})
	case nothing:
		facts = append(facts, fact.Renamed{Stored: env.names()})
	case e.partly(env) != "":
		facts = append(facts, fact.Chained{Name: e.partly(env)})
	case t.untried() != "":
		facts = append(facts, fact.Untried{Address: t.untried()})
	}
	return facts
}

func (env *envelope) noKeyProvider() fact.NoKeyProvider {
	return fact.NoKeyProvider{Stored: env.names(), OfAge: env.storedKind() == kindAge}
}

// other is a configured key provider that stored something in the file, "" if there is none.
func (e *Encryption) other(env *envelope) string {
	for _, address := range slices.Sorted(maps.Keys(e.config.KeyProviders)) {
		if env.stores(metadataKey(e.config.KeyProviders[address], e.keyKinds)) > 0 {
			return address
		}
	}
	return ""
}

// partly is what the metadata names beside a configured key provider, "" for nothing.
func (e *Encryption) partly(env *envelope) string {
	names := slices.Sorted(maps.Keys(env.Meta))
	if !slices.ContainsFunc(names, e.claimed) {
		return ""
	}
	for _, name := range names {
		if !e.claimed(name) {
			return name
		}
	}
	return ""
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
			if r, ok := provider.KeyProvider.(driver.Recognizer); err != nil || ok && r.Recognizes(doc) {
				return true
			}
		}
	}
	return false
}

// user is the place of the first selected method that builds on a key provider, -1 for none.
func (t Target) user(address string) int {
	return slices.IndexFunc(t.methods, func(m string) bool {
		return slices.Contains(t.encryption.candidate(m, nil, nil).references, address)
	})
}

// untried is a configured key provider that no selected method builds on, "" if there is
// none.
func (t Target) untried() string {
	var used []string
	for _, m := range t.methods {
		used = append(used, t.encryption.candidate(m, nil, nil).references...)
	}
	used = t.encryption.withUpstream(used)
	for _, address := range slices.Sorted(maps.Keys(t.encryption.config.KeyProviders)) {
		if !slices.Contains(used, address) {
			return address
		}
	}
	return ""
}

// withUpstream adds to key providers those that they build on.
func (e *Encryption) withUpstream(addresses []string) []string {
	addresses = slices.Clone(addresses)
	for i := 0; i < len(addresses); i++ {
		provider, _ := e.keyProvider(addresses[i]) // nothing was asked that cannot be built
		for _, upstream := range provider.references {
			if !slices.Contains(addresses, upstream) {
				addresses = append(addresses, upstream)
			}
		}
	}
	return addresses
}

// entriesOf are those of a method and of the key providers that it builds on.
func (e *Encryption) entriesOf(c candidate) []*entries.Entry {
	all := []*entries.Entry{e.config.Methods[c.address]}
	for _, address := range e.withUpstream(c.references) {
		all = append(all, e.config.KeyProviders[address])
	}
	noEntry := func(e *entries.Entry) bool { return e == nil } // a kind without settings, or a literal key
	return slices.DeleteFunc(all, noEntry)
}

// oddities are the settings of a method, and of the key providers that it builds on, that
// are probably not what was meant.
func (e *Encryption) oddities(c candidate, oddities func(a attr.Attr, v cty.Value) []string) (found []*attr.Error) {
	for _, entry := range e.entriesOf(c) {
		for _, name := range slices.Sorted(maps.Keys(entry.Settings)) {
			s := entry.Settings[name]
			a, _ := e.table(entry).Attr(name)
			what := oddities(a, s.Value)
			if s.Replaces && s.FromEnvironment {
				what = append(what, "is that of TF_ENCRYPTION, which is merged over the other settings; unset it "+
					"if it is meant for another file")
			}
			for _, odd := range what {
				found = append(found, &attr.Error{Address: entry.Address, Attr: name, Pos: s.Pos, Err: fact.Odd(odd)})
			}
		}
	}
	return found
}

// suspects are what is said of them beside an error.
func (e *Encryption) suspects(c candidate) (facts []fact.Fact) {
	for _, odd := range e.oddities(c, entries.Oddities) {
		facts = append(facts, fact.Suspect{Address: odd.Address, Attr: odd.Attr, What: odd.Err.Error()})
	}
	return facts
}

// ofEntry is the error of an entry that cannot be built, beside what is odd in its
// settings.
func (e *Encryption) ofEntry(err error, entry *entries.Entry) error {
	return fact.Later(err, func() (facts []fact.Fact) {
		for _, name := range slices.Sorted(maps.Keys(entry.Settings)) {
			a, _ := e.table(entry).Attr(name)
			for _, odd := range entries.Oddities(a, entry.Settings[name].Value) {
				facts = append(facts, fact.Suspect{Attr: name, What: odd})
			}
		}
		return facts
	})
}

// isLayered reports whether something is set elsewhere than in TF_ENCRYPTION.
func (e *Encryption) isLayered() bool {
	for _, entry := range e.config.Methods {
		for _, s := range entry.Settings {
			if !s.FromEnvironment {
				return true
			}
		}
	}
	return false
}

// sureOddity is about passphrases alone: no other text gives a key whatever it is. What
// [Encryption.protects] refuses is left out.
func sureOddity(a attr.Attr, v cty.Value) []string {
	if what, sure := recognize.Passphrase(textOf(v)); a.Form == attr.Passphrase && sure == recognize.Surely {
		return []string{what}
	}
	return nil
}

// protects returns an error if a method would seal with a passphrase that is no secret.
func (e *Encryption) protects(c candidate) error {
	for _, entry := range e.entriesOf(c) {
		for _, a := range e.table(entry).Attrs {
			odd, sure := recognize.Passphrase(textOf(entry.Settings[a.Name].Value))
			if a.Form == attr.Passphrase && sure == recognize.NoSecret {
				return is(fact.NoSecret, "%s of %s %s. It is no secret, so nothing is encrypted with it", a.Name, entry.Address, odd)
			}
		}
	}
	return nil
}

// table is that of the kind of an entry.
func (e *Encryption) table(entry *entries.Entry) attr.Table {
	if e.config.Methods[entry.Address] == entry {
		return e.kinds[entry.Kind].Table
	}
	return e.keyKinds[entry.Kind].Table
}

// textOf is the text of a setting, "" for what is none.
func textOf(v cty.Value) string {
	if v == cty.NilVal {
		return ""
	}
	v, _ = v.Unmark()
	if v.Type() != cty.String || !v.IsKnown() || v.IsNull() {
		return ""
	}
	return v.AsString()
}

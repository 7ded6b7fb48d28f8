package encryption

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/mark"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
)

// withFacts adds facts to the error of a method that could not open a file. It keeps only the
// envelope's metadata, because the rest of the envelope would keep the whole file in memory.
func (t Target) withFacts(err error, c candidate, env *envelope) error {
	if env != nil {
		env = &envelope{Meta: env.Meta}
	}
	return fault.Later(err, func() []fault.Fact { return t.facts(err, c, env) })
}

// facts returns the suspicious settings of a method that could not open a file. If the method had
// no key, facts also returns reasons why another key may be the right one. Error messages show only
// the first fact.
func (t Target) facts(err error, c candidate, env *envelope) (facts []fault.Fact) {
	e := t.encryption
	facts = e.suspects(c.method)
	if errors.Is(err, ErrNoKey) {
		if t.pos.File == "TF_ENCRYPTION" && e.isWrittenBeside() {
			facts = append(facts, fault.Advice(". TF_ENCRYPTION overrides the other settings and selects this method; check TF_ENCRYPTION"))
		}
		facts = append(facts, t.factOfKey(errors.Is(err, mark.ErrNothingStored), c, env))
		if again := slices.DeleteFunc(t.Methods(), func(m string) bool { return m != c.address }); len(again) > 1 {
			facts = append(facts, fault.Advice(". This method is selected more than once; select another method as the fallback"))
		}
		if env != nil && len(env.Meta) > 0 && e.other(env) == "" {
			facts = append(facts, fault.Advice(". The key provider that encrypted the file had another name"+env.names()))
		}
		return facts
	}
	isMissing := func(address string) bool { return e.keyProviders[address] == nil }
	if env != nil && len(env.Meta) > 0 && slices.ContainsFunc(c.references, isMissing) && !e.belongs(env) {
		facts = append(facts, env.noKeyProvider())
	}
	return facts
}

// factOfKey returns a fact that says why another key may be the right one, or nil if nothing points
// to another key. The parameter nothing is true if the file stores no metadata of the key provider
// that was tried.
func (t Target) factOfKey(nothing bool, c candidate, env *envelope) fault.Fact {
	e := t.encryption
	if env == nil {
		return nil
	}
	other := e.other(env)
	own, user := slices.Index(t.methods, c.address), t.user(other)
	switch empty := len(env.Meta) == 0; {
	case empty && nothing:
		return fault.Advice(". The file has no metadata at all; configure a key that needs no metadata, for example a static " +
			"key, or restore an intact copy")
	case empty:
	case !e.belongs(env):
		return env.noKeyProvider()
	case nothing && own >= 0 && user >= own: // a later method uses the key provider that stored the metadata
	case nothing && other != "" && user >= 0:
		return fault.Advice(fmt.Sprintf(". The file was encrypted with %s, but this name may now belong to another key; give the old "+
			"key its old name again, or set encrypted_metadata_alias = %q in its block", other, e.storesAs(other)))
	case nothing && other == "":
		return fault.Advice("if the key provider had another name when the file was encrypted, set encrypted_metadata_alias to that " +
			"name" + env.names())
	case nothing, other != "" && !slices.Contains(e.used(t.methods), other) && e.isStatic(other):
		return fault.Advice(fmt.Sprintf(". The file was encrypted with %s; set the argument keys of a method to this key provider, "+
			"and select that method", other))
	case other != "" && !slices.Contains(e.used(t.methods), other):
		return fault.Advice(fmt.Sprintf(". The file was encrypted with %s; set the argument keys of a method to this key provider. "+
			"If the name now belongs to another key, set encrypted_metadata_alias = %q in the block of the old key", other, e.storesAs(other)))
	case e.partly(env) != "":
		return fault.Advice(fmt.Sprintf(". The metadata of the file also names %s, but the settings do not; if the key was made "+
			"with a chain, add that key provider, and set the argument chain", quoted(e.partly(env))))
	case e.namesake(env, other) != "":
		return fault.Advice(fmt.Sprintf("if the file was encrypted with %s, set encrypted_metadata_alias = %q in that key "+
			"provider, and set the argument keys of the method to it", e.namesake(env, other), e.storesAs(other)))
	case t.untried() != "":
		return fault.Advice(". No selected method uses " + t.untried() + "; if it encrypted the file, set the argument keys of a " +
			"method to it")
	}
	return nil
}

func (env *envelope) noKeyProvider() fault.NoKeyProvider {
	return fault.NoKeyProvider{Stored: env.names(), OfAge: env.storedKind() == kindAge}
}

// other returns the address of a configured key provider under whose name the file stores metadata,
// or "" if there is none.
func (e *Encryption) other(env *envelope) string {
	return first(addresses(e.config.KeyProviders), func(address string) bool { return env.stores(e.storesAs(address)) > 0 })
}

// storesAs returns the name under which a configured key provider stores its metadata.
func (e *Encryption) storesAs(address string) string {
	return metadataKey(e.config.KeyProviders[address], e.keyKinds)
}

// isStatic reports whether a key provider returns the same key for all files.
func (e *Encryption) isStatic(address string) bool {
	return e.config.KeyProviders[address].Kind == "static"
}

// partly returns a name in the metadata that no configured key provider uses, if one of the other
// names is used. Otherwise, it returns "".
func (e *Encryption) partly(env *envelope) string {
	names := slices.Sorted(maps.Keys(env.Meta))
	if !slices.ContainsFunc(names, func(name string) bool { return e.claimant(name) != "" }) {
		return ""
	}
	return first(names, func(name string) bool { return e.claimant(name) == "" })
}

// first returns the first string that fits, or "" if none does.
func first(all []string, fits func(string) bool) string {
	if i := slices.IndexFunc(all, fits); i >= 0 {
		return all[i]
	}
	return ""
}

// namesake returns the address of another configured key provider that may have stored its metadata
// under the name of other. The two have the same kind. If there is none, namesake returns "".
func (e *Encryption) namesake(env *envelope, other string) string {
	if other == "" || e.isStatic(other) {
		return ""
	}
	return first(configured(e.config.KeyProviders, e.config.KeyProviders[other].Kind), func(address string) bool {
		return address != other && env.stores(e.storesAs(address)) == 0
	})
}

// belongs reports whether a configured key provider may have stored metadata in the file.
func (e *Encryption) belongs(env *envelope) bool {
	for name, doc := range env.Meta {
		if e.claimant(name) != "" {
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

// user returns the index of the first selected method that uses a key provider, or -1 if there is
// none.
func (t Target) user(address string) int {
	return slices.IndexFunc(t.methods, func(m string) bool {
		return slices.Contains(t.encryption.methodAt(m).references, address)
	})
}

// untried returns the address of a configured key provider that no selected method uses, or "" if
// there is none.
func (t Target) untried() string {
	used := t.encryption.used(t.methods)
	return first(addresses(t.encryption.config.KeyProviders), func(address string) bool { return !slices.Contains(used, address) })
}

// used returns the addresses of all key providers that methods use, directly or through other key
// providers.
func (e *Encryption) used(methods []string) (all []string) {
	for _, m := range methods {
		all = append(all, e.methodAt(m).references...)
	}
	return e.withUpstream(all)
}

// withUpstream returns the given addresses of key providers, and the addresses of all key providers
// that they build on.
func (e *Encryption) withUpstream(addresses []string) []string {
	addresses = slices.Clone(addresses)
	for i := 0; i < len(addresses); i++ {
		provider, _ := e.keyProvider(addresses[i]) // a key provider that cannot be built has no references
		for _, upstream := range provider.references {
			if !slices.Contains(addresses, upstream) {
				addresses = append(addresses, upstream)
			}
		}
	}
	return addresses
}

// oddities returns probable mistakes in the settings and environment variables of a method and of
// the key providers it uses.
func (e *Encryption) oddities(m method) (all []entries.Oddity) {
	add := func(address string, values attr.Values) {
		for _, odd := range entries.Oddities(values) {
			odd.Address = address
			all = append(all, odd)
		}
	}
	add(m.address, m.values)
	for _, address := range e.withUpstream(m.references) {
		provider, _ := e.keyProvider(address)
		add(address, provider.values)
	}
	return all
}

// suspects converts the oddities of a method to facts for an error.
func (e *Encryption) suspects(m method) (facts []fault.Fact) {
	for _, odd := range e.oddities(m) {
		facts = append(facts, odd.Suspect())
	}
	return facts
}

// isWrittenBeside reports whether any method has a setting that does not come from TF_ENCRYPTION.
func (e *Encryption) isWrittenBeside() bool {
	for _, entry := range e.config.Methods {
		for _, s := range entry.Settings {
			if !s.FromEnvironment {
				return true
			}
		}
	}
	return false
}

// protects returns an error if a method would seal with a passphrase that is not secret.
func (e *Encryption) protects(m method) error {
	for _, odd := range e.oddities(m) {
		if is := odd.Suspect(); odd.Sure == recognize.NoSecret {
			return fault.With(fmt.Errorf("%s cannot be used to encrypt: it %s", is.Setting, is.What),
				". If a file was encrypted with the present value, keep that value in a second key provider, and select the method "+
					"of that key provider as the fallback")
		}
	}
	return nil
}

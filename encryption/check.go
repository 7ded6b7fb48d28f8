package encryption

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// Finding is a certain or probable mistake that [Encryption.Check] found in the settings.
type Finding struct {
	// Err describes the mistake. It has the address of the entry or the target, the argument, and
	// the position in the text.
	Err *attr.Error

	// Target is "state", "plan", "remote_state_data_sources.default", "remote_state_data_source
	// NAME" or "". Errors of that target begin with this text. If Target is set and Doubt is false,
	// the target cannot open or seal any file. If Target is "", one entry is unusable, which
	// matters only if a file needs the entry; see [Target.Check].
	Target string

	// Doubt means that nothing fails, but that the target probably seals with a wrong key, for
	// example because the passphrase is in quotation marks. Files sealed with such a key open only
	// with the same mistake, so a program should report the doubt before it seals its first file.
	Doubt bool
}

// Check returns the mistakes in the settings that can be found without a file. It checks every
// target, and every key provider and method, whether used or not. It contacts no server and runs no
// program.
//
// Check does not report targets without settings. It also does not report mistakes that only
// sealing reveals: a passphrase that is not secret, two key providers with the same alias, or a
// primary method that cannot seal.
func (e *Encryption) Check() []Finding {
	if !e.made() {
		return []Finding{{Err: &attr.Error{Err: errNotMade()}}}
	}
	var found findings
	for _, t := range e.targets() {
		found = append(found, t.Check()...)
	}
	for _, address := range addresses(e.config.KeyProviders) {
		found.ofKeyProvider(e, "", address)
	}
	for _, address := range addresses(e.config.Methods) {
		found.ofMethod(e, "", address)
		found.add("", address, e.checkThen(address, nil))
	}
	return found
}

// Check returns the findings of [Encryption.Check] for one target: doubts, and mistakes that keep
// the target from opening or sealing any file. It reports unusable entries only if all methods of
// the target are unusable.
func (t Target) Check() []Finding {
	var found findings
	for _, err := range t.mistakes() {
		found.add(t.name, t.name, err)
	}
	if len(found) == 0 {
		found = t.useless()
	}
	if t.encryption.made() {
		found.doubt(t)
	}
	return found
}

// useless returns the mistakes of a target whose methods are all unusable, or nil if at least one
// is usable.
func (t Target) useless() (all findings) {
	e := t.encryption
	for _, address := range t.methods {
		var found findings
		found.ofMethod(e, t.name, address)
		for _, address := range e.withUpstream(e.methodAt(address).references) {
			found.ofKeyProvider(e, t.name, address)
		}
		if len(found) == 0 {
			return nil
		}
		for _, f := range found {
			all.add(t.name, f.Err.Address, f.Err)
		}
	}
	return all
}

// targets returns all targets in the settings.
func (e *Encryption) targets() (targets []Target) {
	if e.config.State != nil {
		targets = append(targets, e.State())
	}
	if e.config.Plan != nil {
		targets = append(targets, e.Plan())
	}
	names := slices.Sorted(maps.Keys(e.config.Remote))
	if e.config.RemoteDefault != nil {
		names = append([]string{""}, names...)
	}
	for _, name := range names {
		targets = append(targets, e.RemoteState(name))
	}
	return targets
}

type findings []Finding

// add records the mistakes in err for the entry at address. It skips mistakes that are already
// recorded.
func (f *findings) add(target, address string, err error) {
	before := *f
	for _, err := range fault.All(err) {
		mistake, ok := errors.AsType[*attr.Error](err)
		switch {
		case !ok:
			mistake = &attr.Error{Address: address, Err: err}
		case mistake.Address == "":
			mistake = &attr.Error{Address: address, Attr: mistake.Attr, Unknown: mistake.Unknown, Pos: mistake.Pos, Err: mistake.Err}
		}
		isSame := func(other Finding) bool {
			at := other.Err
			isEntry := at.Address == mistake.Address && at.Attr == mistake.Attr && (at.Attr != "" || target == "")
			return !other.Doubt && (target == "" || target == other.Target) && (at == mistake || isEntry)
		}
		if !slices.ContainsFunc(before, isSame) {
			*f = append(*f, Finding{Err: mistake, Target: target})
		}
	}
}

// ofKeyProvider records the mistakes in a key provider. It records nothing for an address without a
// block: the address then belongs to a literal key, or the reference is the mistake.
func (f *findings) ofKeyProvider(e *Encryption, target, address string) {
	if e.config.KeyProviders[address] == nil {
		return
	}
	provider, err := e.keyProvider(address)
	f.dangling(e, target, address, provider.values)
	if slices.Contains(e.withUpstream(provider.references), address) {
		_, err = fileKeys{encryption: e}.identity(address, nil)
	}
	f.add(target, address, err)
}

// ofMethod records the mistakes in a method. The method may be a kind without a block.
func (f *findings) ofMethod(e *Encryption, target, address string) {
	m, err := e.methods[address]()
	f.dangling(e, target, address, m.values)
	f.add(target, address, err)
}

// dangling records the arguments of an entry that name a missing key provider.
func (f *findings) dangling(e *Encryption, target, address string, values attr.Values) {
	for _, given := range entries.KeyProviders(values) {
		name := given.Address()
		if _, _, literal := e.config.Literal(name); literal {
			continue
		}
		_, err := e.keyProvider(name)
		if missing, ok := fault.Find[fault.NotConfigured](err); ok && missing.Address == name {
			others := slices.DeleteFunc(addresses(e.config.KeyProviders), func(other string) bool { return other == address })
			err := notConfigured(name, others, syntax.Configured(name, others))
			f.add(target, address, &attr.Error{Address: address, Attr: given.Path, Pos: given.Pos, Err: err})
		}
	}
}

// doubt records probable mistakes in the key that a target seals with. It leaves out texts that are
// not a passphrase at all, because [Target.Encrypt] refuses them.
func (f *findings) doubt(t Target) {
	e := t.encryption
	if len(t.methods) == 0 {
		return
	}
	seen := map[string]bool{}
	for address := t.methods[0]; e.methods[address] != nil && !seen[address]; { // follows the "then" arguments from method to method
		seen[address] = true
		m, err := e.methods[address]()
		for _, odd := range e.oddities(m) {
			if err := (&attr.Error{Address: odd.Address, Attr: odd.Attr, Pos: odd.Pos, Err: fault.Odd(odd.What)}); odd.Sure == recognize.Surely {
				*f = append(*f, Finding{Err: err, Target: t.name, Doubt: true})
			}
		}
		if err != nil {
			return
		}
		address = m.then
	}
}

// mistakes returns the mistakes that keep the target from opening or sealing any file.
func (t Target) mistakes() (all fault.List) {
	if !t.encryption.made() {
		return fault.List{errNotMade()}
	}
	for i, address := range t.methods {
		if err := t.mistake(i, address); err != nil {
			all = append(all, err)
		}
	}
	return all
}

func (t Target) mistake(i int, address string) error {
	if address == "" {
		return t.fail("no method is set; set one, for example method = method.aes_gcm.main")
	}
	if _, ok := t.encryption.methods[address]; !ok {
		return t.fail("%w", t.encryption.noMethod(address, t.methods[:i]...))
	}
	if t.enforced && t.encryption.isPlaintext(address) {
		return t.fail("%w", fault.Known(fault.With(fmt.Errorf("the %s %s reads plaintext, but enforced = true forbids plaintext",
			[...]string{"method", "fallback"}[min(i, 1)], address), "remove one of these two settings"), fault.Lasting{}))
	}
	return t.encryption.checkThen(address, nil)
}

// check returns the first mistake of the target as an [*Error], or nil if there is none.
func (t Target) check() error {
	if all := t.mistakes(); len(all) > 0 {
		return &Error{Step: StepConfiguration, Err: all[0]}
	}
	return nil
}

// made reports whether e comes from [Load].
func (e *Encryption) made() bool { return e != nil && e.kinds != nil }

func errNotMade() error {
	return because(ErrNotConfigured, "the Encryption has no settings; create it with Load")
}

// errNilContext is the error for a nil context. Package net/http refuses a nil context, too.
var errNilContext = errors.New("the context is nil")

// checkThen follows the "then" arguments from method to method. It returns an error if an address
// is not configured or reads plaintext, or if the methods form a cycle. It ignores a method that
// cannot be built, because that is reported when a file needs the method.
func (e *Encryption) checkThen(address string, path []string) error {
	path = append(path, address)
	m, err := e.methods[address]()
	if err != nil || m.then == "" {
		return nil
	}
	fail := func(format string, args ...any) error {
		pos := e.config.Methods[address].Settings["then"].Pos
		return &attr.Error{Address: address, Attr: "then", Pos: pos, Err: fmt.Errorf(format, args...)}
	}
	switch _, exists := e.methods[m.then]; {
	case e.isPlaintext(m.then):
		return fail("plaintext needs no method here; remove the argument then")
	case !exists && !syntax.IsMethod(m.then):
		return fail("%w", syntax.ErrMethodRequired)
	case !exists:
		return fail("%w", e.noMethod(m.then, path...))
	case slices.Contains(path, m.then):
		start := slices.Index(path, m.then)
		return fail("%w", fault.With(fmt.Errorf("the then arguments of these methods form a cycle: %s",
			strings.Join(append(path[start:], m.then), " → ")), "remove the argument then from one of these methods"))
	}
	return e.checkThen(m.then, path)
}

func (t Target) fail(format string, args ...any) error {
	return &attr.Error{Address: t.name, Pos: t.pos, Err: fmt.Errorf(format, args...)}
}

// noMethod returns an error that explains why no method has this name. It does not suggest the
// methods in others, which are already selected or lead to this name.
func (e *Encryption) noMethod(method string, others ...string) error {
	isOther := func(address string) bool { return slices.Contains(others, address) }
	if _, isKind := e.kinds[method]; isKind {
		if there := configured(e.config.Methods, method); len(there) > 0 {
			return fmt.Errorf("a block configures the method %s; use the address of the block: %s",
				method, strings.Join(there, " or "))
		}
		return fault.With(fmt.Errorf("the kind %s requires settings, so its name alone is not enough", method), ownBlock(method))
	}
	all := slices.DeleteFunc(slices.Sorted(maps.Keys(e.methods)), isOther)
	if entry := e.config.Methods[syntax.Nearest(method, all)]; entry != nil && e.kinds[entry.Kind].Build == nil {
		_, err := e.methods[entry.Address]() // the reference is right, but the entry has an unknown kind
		return err
	}
	there := slices.DeleteFunc(addresses(e.config.Methods), isOther)
	then := cmp.Or(syntax.Suggest(method, all), syntax.Configured(method, there))
	if strings.HasPrefix(method, "method."+syntax.Unencrypted+".") { // plaintext does not always need a block
		then = ""
	}
	return notConfigured(outside.Line(method, maxName), there, then)
}

// notConfigured returns the error for an address that is missing from others. The message ends with
// then, unless others is empty.
func notConfigured(address string, others []string, then string) error {
	if len(others) == 0 {
		then = ""
	}
	return fault.Known(errors.New(address+" is not configured"+then), fault.NotConfigured{Address: address, Alone: len(others) == 0})
}

// isPlaintext reports whether the method at address reads unencrypted data.
func (e *Encryption) isPlaintext(address string) bool {
	entry := e.config.Methods[address]
	return address == syntax.Unencrypted || entry != nil && entry.Kind == syntax.Unencrypted
}

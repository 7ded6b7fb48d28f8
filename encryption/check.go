package encryption

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fact"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// Check looks at all that the settings say of the target before there is a file: every
// method exists, each can be built with its key providers, and none breaks enforced. It
// contacts nothing and runs nothing. An error is an [*Error] of [StepConfiguration].
//
// If the only mistake is that some methods cannot be built, these are its attempts. They
// are no reason to give up: a fallback that cannot be built does no harm unless a file
// needs it.
func (t Target) Check() error {
	if err := t.check(); err != nil {
		return &Error{Step: StepConfiguration, Err: err}
	}
	var attempts []Attempt
	var errs fact.List
	for _, address := range t.methods {
		if err := t.encryption.usable(address); err != nil {
			attempts, errs = append(attempts, Attempt{address, err}), append(errs, err)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	text := errors.New("a method cannot be used:") //nolint:staticcheck // the attempts follow
	return &Error{Step: StepConfiguration, Attempts: attempts, Err: &reasonError{text, errs}}
}

// usable is why a method, or one that its then leads to, cannot be built, or a key
// provider of it.
func (e *Encryption) usable(address string) error {
	m, err := e.methods[address]()
	if err != nil {
		return err
	}
	for _, keys := range m.references {
		if _, err := (fileKeys{encryption: e}).identity(keys, nil); err != nil {
			return keyError(keys, err)
		}
	}
	if m.then == "" {
		return nil
	}
	if err := e.usable(m.then); err != nil { // check has looked for circles
		return &thenError{address: m.then, step: StepConfiguration, err: err}
	}
	return nil
}

// check looks at what must be right whatever a file needs.
func (t Target) check() error {
	if !t.encryption.made() {
		return errNotMade()
	}
	for i, address := range t.methods {
		if address == "" {
			return t.fail("no method is set, such as method = method.aes_gcm.main")
		}
		if _, ok := t.encryption.methods[address]; !ok {
			return t.fail("%w", t.encryption.notConfigured(address, t.methods[:i]...))
		}
		if t.enforced && t.encryption.isPlaintext(address) {
			return t.fail("the %s %s reads plaintext, which enforced = true forbids; remove one of the two",
				[...]string{"method", "fallback"}[min(i, 1)], address)
		}
		if err := t.encryption.checkThen(address, nil); err != nil {
			return err
		}
	}
	return nil
}

// made reports whether e comes from [New].
func (e *Encryption) made() bool { return e != nil && e.kinds != nil }

func errNotMade() error {
	return because(ErrNotConfigured, "there are no settings here, not even empty ones: Load makes an Encryption")
}

// errNilContext is for a context that is nil, which is an error in net/http too.
var errNilContext = errors.New("the context is nil")

// checkThen follows then from method to method. A method that cannot be built
// is reported when its turn comes.
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
		return fail("plaintext needs no method here: without then, what is inside is the plaintext")
	case !exists && !syntax.IsMethod(m.then):
		return fail("%w", syntax.ErrMethodRequired)
	case !exists:
		return fail("%w", e.notConfigured(m.then, path...))
	case slices.Contains(path, m.then):
		start := slices.Index(path, m.then)
		return fail("the methods lead to one another in a circle: %s; leave out the argument then of "+
			"one", strings.Join(append(path[start:], m.then), " → "))
	}
	return e.checkThen(m.then, path)
}

func (t Target) fail(format string, args ...any) error {
	return &attr.Error{Address: t.name, Pos: t.pos, Err: fmt.Errorf(format, args...)}
}

// notConfigured explains why there is no method of this name. The others, which are
// selected beside it or lead to it, are not what was meant.
func (e *Encryption) notConfigured(method string, others ...string) error {
	isOther := func(address string) bool { return slices.Contains(others, address) }
	if _, isKind := e.kinds[method]; isKind {
		if there := configured(e.config.Methods, method); len(there) > 0 {
			return fmt.Errorf("a method of the kind %s is configured with settings, so it is named by its address: %s",
				method, strings.Join(there, " or "))
		}
		return fmt.Errorf("the kind %s requires settings, so it cannot be named alone: configure a method of this kind, "+
			"and name its address, such as method.%[1]s.main", method)
	}
	all := slices.DeleteFunc(slices.Sorted(maps.Keys(e.methods)), isOther)
	if entry := e.config.Methods[syntax.Nearest(method, all)]; entry != nil && e.kinds[entry.Kind].Build == nil {
		_, err := e.methods[entry.Address]() // it is the entry that is misspelt, and not its name here
		return err
	}
	text := outside.Line(method, maxName) + " is not configured"
	there := slices.DeleteFunc(addresses(e.config.Methods), isOther)
	switch {
	case strings.HasPrefix(method, "method."+syntax.Unencrypted+"."): // which need not be configured everywhere
	case len(there) == 0:
		text += "; add its block, or correct the name"
	default:
		text += cmp.Or(syntax.Suggest(method, all), syntax.Configured(method, there))
	}
	return fact.With(errors.New(text), fact.NotConfigured{Address: method})
}

// isPlaintext reports whether the method at address reads unencrypted data.
func (e *Encryption) isPlaintext(address string) bool {
	return address == syntax.Unencrypted || e.kindOf(address) == syntax.Unencrypted
}

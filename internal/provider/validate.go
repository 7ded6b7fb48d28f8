package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// problem is a mistake in a block, with its path.
type problem struct {
	path path.Path
	err  error
}

// findings holds the mistakes in a block, and an error that names the first part of the block that is not
// known yet.
type findings struct {
	problems []problem
	unknown  error
}

func (f *findings) fail(p path.Path, format string, args ...any) {
	f.failAt(p, fmt.Errorf(format, args...))
}

func (f *findings) failAt(p path.Path, err error) { f.problems = append(f.problems, problem{p, err}) }

// hasFailed reports whether a problem with path p is already recorded.
func (f *findings) hasFailed(p path.Path) bool {
	return slices.ContainsFunc(f.problems, func(found problem) bool { return found.path.Equal(p) })
}

func (f *findings) notKnown(what string) {
	if f.unknown == nil {
		f.unknown = unknownError(what)
	}
}

// check records the mistakes in the blocks, with their paths. For a sensitive argument, it records the path
// of the block: given the path of an argument, Terraform prints the line with its value.
func (s encryptionSettings) check(e *encryption.Encryption) {
	for _, f := range e.Check() {
		place, isBlock := s.places[f.Err.Address] // checkTarget records the mistakes in targets
		if !isBlock || f.Doubt || !s.isFinal(f.Err) {
			continue
		}
		name, inside, isNested := strings.Cut(f.Err.Attr, ".")
		a, _ := s.table(f.Err.Address).Attr(name)
		switch {
		case isNested:
			s.fail(place.AtName(name).AtListIndex(0), "%s: %w", inside, f.Err.Err)
		case f.Err.Attr == "":
			s.failAt(place, f.Err.Err)
		case a.Name == "", // "then", which no table lists
			a.Secrecy.IsHidden(), !s.entry(f.Err.Address).Settings[name].IsSet():
			s.fail(place, "%s: %w", name, f.Err.Err)
		default:
			s.failAt(place.AtName(a.Name), f.Err.Err)
		}
	}
}

// isFinal reports whether no environment variable could correct a mistake. That is so if the block itself has
// a value that its table does not allow, or if no variable can set any of the arguments. In text, most
// mistakes are not final as long as TF_ENCRYPTION may add settings.
func (s encryptionSettings) isFinal(mistake *attr.Error) bool {
	entry := s.entry(mistake.Address)
	name, _, _ := strings.Cut(mistake.Attr, ".")
	isWritten := entry != nil && entry.Settings[name].IsSet() && !fault.Has[fault.NotConfigured](mistake)
	switch {
	case mistake.Unknown:
		return false
	case s.layered && !isWritten:
		return fault.Has[fault.Lasting](mistake)
	case entry == nil: // a mistake in a target
		return true
	}
	table := s.table(mistake.Address)
	a, _ := table.Attr(mistake.Attr)
	fromEnvironment := func(a attr.Attr) bool { return len(a.Env) > 0 || a.Attrs != nil }
	return a.Form == attr.KeyProvider || mistake.Attr == "then" || entry.IsWrong(table, mistake.Attr) ||
		!slices.ContainsFunc(table.Attrs, fromEnvironment)
}

// entry returns the key provider or method with the given address.
func (s encryptionSettings) entry(address string) *unstable.Entry {
	return cmp.Or(s.Methods[address], s.KeyProviders[address])
}

// table returns the attribute table of the key provider or method with the given address.
func (s encryptionSettings) table(address string) attr.Table {
	if m, ok := s.Methods[address]; ok {
		kind, _ := s.registry.Method(m.Kind)
		return kind.Table
	}
	kind, _ := s.registry.KeyProvider(s.KeyProviders[address].Kind)
	return kind.Table
}

// reason returns the error without the address, for a diagnostic whose path already shows it.
func reason(err error) error {
	if e, ok := errors.AsType[*attr.Error](err); ok {
		return e.Err
	}
	return err
}

// checkText records the mistakes that prevent all methods of a request from opening any file. If an
// environment variable could correct one of the mistakes, checkText records none. The mistakes have no paths;
// see failInText.
func (f *findings) checkText(c *configured, r stateRequest) {
	t, err := c.target(r)
	if err != nil {
		return // another check records this mistake, with its path
	}
	mistakes := slices.DeleteFunc(t.Check(), func(found encryption.Finding) bool { return found.Doubt })
	for _, found := range mistakes {
		if !c.settings.isFinal(found.Err) {
			return
		}
	}
	for _, found := range mistakes {
		f.failAt(path.Empty(), found.Err)
	}
}

// checkTarget records methods that do not exist, and methods that the argument enforced forbids.
func (f *findings) checkTarget(c *configured, t *unstable.Target, p path.Path) {
	if t == nil {
		return
	}
	var right []string
	for i, address := range slices.Concat([]string{t.Method}, t.Fallbacks) {
		at := p.AtName("method")
		if i > 0 {
			at = p.AtName("fallback").AtListIndex(i - 1).AtName("method")
		}
		switch err := c.use(append(slices.Clone(right), address)...); {
		case err == nil:
			right = append(right, address)
		case !f.hasFailed(at):
			f.failAt(at, err)
		}
	}
}

// use returns an error if the methods with these addresses cannot be used.
func (c *configured) use(methods ...string) error {
	t, err := c.encryption.Use(methods...)
	if err != nil || !isYes(c.enforced) {
		return err
	}
	_, err = t.Enforce().Decrypt(context.Background(), nil) // opens nothing, but returns configuration mistakes
	if stepOf(err) != stepConfiguration {
		return nil
	}
	return err
}

func (f *findings) checkAddress(registry encryption.Registry, address string, p path.Path) {
	isKind := func(b driver.Block[driver.Method]) bool { return b.Name == address }
	odd := recognize.Text(address, recognize.Value).Said("")
	switch isAddress := syntax.IsMethodAddress(address) || slices.ContainsFunc(registry.Methods, isKind); {
	case !isAddress && odd != "":
		f.fail(p, "the value %w", fault.Odd(odd))
	case !isAddress:
		f.fail(p, "this is not the address of a method; write an address like method.aes_gcm.main, or the name of a kind without settings, "+
			"like sops or unencrypted")
	}
}

func unknownError(what string) error {
	return &attr.Error{Unknown: true, Err: fmt.Errorf("%s of the provider configuration is not known yet", what)}
}

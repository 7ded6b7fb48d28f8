package provider

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fact"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// problem is a mistake in a block, with its place.
type problem struct {
	path path.Path
	err  error
}

// findings are the mistakes in a block, and the first part of it that is not known
// yet.
type findings struct {
	problems []problem
	unknown  error
}

func (f *findings) fail(p path.Path, format string, args ...any) {
	f.failAt(p, fmt.Errorf(format, args...))
}

func (f *findings) failAt(p path.Path, err error) { f.problems = append(f.problems, problem{p, err}) }

// hasFailed reports whether there is an error at p already.
func (f *findings) hasFailed(p path.Path) bool {
	return slices.ContainsFunc(f.problems, func(found problem) bool { return found.path.Equal(p) })
}

func (f *findings) notKnown(what string) {
	if f.unknown == nil {
		f.unknown = unknownError(what)
	}
}

// check finds key providers and methods that do not exist, and settings that no
// variable of the environment could correct, such as a passphrase that is too short.
func (s encryptionSettings) check(e *encryption.Encryption) {
	for _, kind := range s.registry.KeyProviders {
		for _, address := range sortedKeys(s.KeyProviders) {
			if entry := s.KeyProviders[address]; entry.Kind == kind.Name {
				s.checkReferences(address, kind.Table, entry)
				s.checkValues(address, kind, entry)
			}
		}
	}
	for _, kind := range s.registry.Methods {
		for _, address := range sortedKeys(s.Methods) {
			if entry := s.Methods[address]; entry.Kind == kind.Name {
				s.checkReferences(address, kind.Table, entry)
				if err := checkMethod(e, false, address); err != nil { // then
					s.failAt(s.places[address], err)
				}
			}
		}
	}
}

func (s encryptionSettings) checkReferences(address string, table attr.Table, entry *attr.Entry) {
	for _, a := range table.Attrs {
		setting := entry.Settings[a.Name]
		if !a.Reference || setting.Value == cty.NilVal || !setting.Value.IsKnown() {
			continue
		}
		name := setting.Value.AsString()
		switch _, exists := s.KeyProviders[name]; {
		case setting.Err != nil:
			s.failAt(s.places[address].AtName(a.Name), reason(setting.Err))
		case !exists:
			others := slices.DeleteFunc(sortedKeys(s.KeyProviders), func(other string) bool { return other == address })
			then := syntax.Configured(name, others)
			if len(others) == 0 {
				then = "; add its block, or correct the name"
			}
			err := fact.With(fmt.Errorf("%s is not configured%s", name, then), fact.NotConfigured{Address: name})
			s.failAt(s.places[address].AtName(a.Name), err)
		}
	}
}

// checkValues reports a mistake in a sensitive argument at the block: at the
// path of an argument, Terraform prints the line with its value.
func (s encryptionSettings) checkValues(address string, kind driver.Block[driver.KeyProvider], entry *attr.Entry) {
	for _, a := range kind.Attrs {
		if len(a.Env) > 0 || a.Attrs != nil || entry.Settings[a.Name].Err != nil {
			return
		}
	}
	values, err := entry.Decode(kind.Table, nil)
	if err == nil {
		_, err = kind.Build(values)
	}
	mistake, ok := errors.AsType[*attr.Error](err)
	if !ok || mistake.Unknown {
		return
	}
	a, _ := kind.Attr(mistake.Attr)
	switch place := s.places[address]; {
	case a.Name == "":
		s.failAt(place, mistake.Err)
	case a.Sensitive:
		s.fail(place, "%s: %w", a.Name, mistake.Err)
	default:
		s.failAt(place.AtName(a.Name), mistake.Err)
	}
}

// reason is a mistake without the address, which its place shows.
func reason(err error) error {
	if e, ok := errors.AsType[*attr.Error](err); ok {
		return e.Err
	}
	return err
}

// checkTarget finds methods that do not exist, and those that enforced forbids.
func (f *findings) checkTarget(c *configured, t *config.Target, p path.Path) {
	if t == nil {
		return
	}
	var right []string
	for i, address := range slices.Concat([]string{t.Method}, t.Fallbacks) {
		at := p.AtName("method")
		if i > 0 {
			at = p.AtName("fallback").AtListIndex(i - 1).AtName("method")
		}
		switch err := checkMethod(c.encryption, isYes(c.enforced), append(slices.Clone(right), address)...); {
		case err == nil:
			right = append(right, address)
		case !f.hasFailed(at):
			f.failAt(at, err)
		}
	}
}

// checkMethod leaves out what makes a method unusable: a variable of the environment may
// correct it, and where the mistake is an argument, checkValues has the place.
func checkMethod(e *encryption.Encryption, enforced bool, methods ...string) error {
	t, err := e.Use(methods...)
	if enforced {
		t = t.Enforce()
	}
	if err == nil {
		err = t.Check()
	}
	if failed, ok := errors.AsType[*encryption.Error](err); ok && failed.Attempts != nil {
		return nil
	}
	return err
}

func (f *findings) checkAddress(registry encryption.Registry, address string, p path.Path) {
	isKind := func(b driver.Block[driver.Method]) bool { return b.Name == address }
	if !syntax.IsMethodAddress(address) && !slices.ContainsFunc(registry.Methods, isKind) {
		f.fail(p, "the address of a method is required, such as method.aes_gcm.main, or a kind without settings, "+
			"such as sops or unencrypted")
	}
}

func unknownError(what string) error {
	return &attr.Error{Unknown: true, Err: fmt.Errorf("%s of the provider configuration is not known yet", what)}
}

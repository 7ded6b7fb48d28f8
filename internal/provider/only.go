package provider

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/syntax"
)

// What is the only one of its kind need not be named. This is for blocks:
// OpenTofu's text keeps OpenTofu's rules.

// onlyName is the name of an entry without one.
const onlyName = "main"

// onlyMethod is the kind of the method of a lone key provider.
const onlyMethod = "aes_gcm"

// writeOut adds what the user need not write: the method of a lone key provider,
// the keys of a method, and the default. Plaintext is never a default: it is
// read only if somebody names it.
func (d *decoder) writeOut(cfg *config.Config) {
	keys := sortedKeys(cfg.KeyProviders)
	if len(keys) == 1 && len(cfg.Methods) == 0 {
		address := "method." + onlyMethod + "." + onlyName
		cfg.Methods[address] = &attr.Entry{Address: address, Kind: onlyMethod, Settings: map[string]attr.Setting{}}
		d.places[address] = d.places[keys[0]]
	}
	for _, table := range d.catalog.registry.Options(cty.NilVal).Methods {
		d.writeOutKeys(cfg, table, keys)
	}
	methods := sortedKeys(cfg.Methods)
	if len(methods) == 1 && cfg.Methods[methods[0]].Kind != attr.Unencrypted {
		cfg.RemoteDefault = &config.Target{Method: methods[0]}
	}
}

// writeOutKeys adds the only key provider to the methods of a kind that require
// one and name none.
func (d *decoder) writeOutKeys(cfg *config.Config, table attr.Table, keys []string) {
	for _, a := range table.Attrs {
		if !a.Reference || !a.Required {
			continue
		}
		for _, address := range sortedKeys(cfg.Methods) {
			method := cfg.Methods[address]
			if _, set := method.Settings[a.Name]; set || method.Kind != table.Name {
				continue
			}
			switch place := d.places[address].AtName(a.Name); len(keys) {
			case 1:
				method.Settings[a.Name] = attr.Setting{Value: cty.StringVal(keys[0])}
			case 0:
				d.fail(place, "there is no key provider; add one, such as key_provider { pbkdf2 { passphrase = … } }")
			default:
				d.fail(place, "this argument is required, because there is more than one key provider: %s",
					join(keys, func(key string) string { return fmt.Sprintf("%s = %q", a.Name, key) }))
			}
		}
	}
}

// checkTarget finds methods that do not exist.
func (d *decoder) checkTarget(e *encryption.Encryption, t *config.Target, p path.Path) {
	if t == nil {
		return
	}
	for i, address := range t.Methods() {
		at := p.AtName("method")
		if i > 0 {
			at = p.AtName("fallback").AtListIndex(i - 1).AtName("method")
		}
		if err := e.Use(address).Check(); err != nil {
			d.failAt(at, err)
		}
	}
}

// checkEntries finds key providers and methods that do not exist, and settings that no
// variable of the environment could mend, such as a passphrase that is too short.
func (d *decoder) checkEntries(cfg *config.Config, e *encryption.Encryption) {
	for _, kind := range d.catalog.registry.KeyProviders {
		for _, address := range sortedKeys(cfg.KeyProviders) {
			if entry := cfg.KeyProviders[address]; entry.Kind == kind.Name {
				d.checkReferences(cfg, address, kind.Table, entry)
				d.checkValues(address, kind, entry)
			}
		}
	}
	for _, kind := range d.catalog.registry.Methods {
		for _, address := range sortedKeys(cfg.Methods) {
			if entry := cfg.Methods[address]; entry.Kind == kind.Name {
				d.checkReferences(cfg, address, kind.Table, entry)
				if err := e.Use(address).Check(); err != nil { // then
					d.failAt(d.places[address], err)
				}
			}
		}
	}
}

func (d *decoder) checkReferences(cfg *config.Config, address string, table attr.Table, entry *attr.Entry) {
	for _, a := range table.Attrs {
		s := entry.Settings[a.Name]
		if !a.Reference || s.Value == cty.NilVal || !s.Value.IsKnown() {
			continue
		}
		name := s.Value.AsString()
		switch _, exists := cfg.KeyProviders[name]; {
		case s.Err != nil:
			d.failAt(d.places[address].AtName(a.Name), reason(s.Err))
		case !exists:
			d.fail(d.places[address].AtName(a.Name), "%s is not configured%s", name, syntax.Suggest(name, sortedKeys(cfg.KeyProviders)))
		}
	}
}

// checkValues reports a mistake in a sensitive argument at the block: at the
// path of an argument, Terraform prints the line with its value.
func (d *decoder) checkValues(address string, kind encryption.Block[encryption.KeyProvider], entry *attr.Entry) {
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
	switch place := d.places[address]; {
	case a.Name == "":
		d.failAt(place, mistake.Err)
	case a.Sensitive:
		d.fail(place, "%s: %w", a.Name, mistake.Err)
	default:
		d.failAt(place.AtName(a.Name), mistake.Err)
	}
}

func sortedKeys(entries map[string]*attr.Entry) []string { return slices.Sorted(maps.Keys(entries)) }

// reason is a mistake without the address, which a place says anyway.
func reason(err error) error {
	if e, ok := errors.AsType[*attr.Error](err); ok {
		return e.Err
	}
	return err
}

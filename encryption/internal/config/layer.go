package config

import (
	"errors"
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
)

// Layer is a source of settings for [Read].
type Layer interface {
	read(Options) (*Config, error)
}

// With is an option of a layer.
type With interface {
	change(*Options)
}

type layer func(Options) (*Config, error)

func (l layer) read(o Options) (*Config, error) { return l(o) }

type with func(*Options)

func (w with) change(o *Options) { w(o) }

// NewWith makes a [With] from a function.
func NewWith(change func(*Options)) With { return with(change) }

// NewLayer makes a [Layer] from a function and options.
func NewLayer[W With](read func(Options) (*Config, error), with ...W) Layer {
	return layer(func(o Options) (*Config, error) {
		for _, w := range with {
			if any(w) != nil {
				w.change(&o)
			}
		}
		if err := expectValues(o.Variables); err != nil {
			return nil, err
		}
		c, err := read(o)
		if o.AllowCommands {
			c = Merge(c, &Config{AllowCommands: true})
		}
		return c, err
	})
}

// expectValues returns an error if variables contain [cty.NilVal], which expressions cannot use.
func expectValues(variables cty.Value) error {
	if variables == cty.NilVal {
		return nil // there are no variables
	}
	return cty.Walk(variables, func(path cty.Path, v cty.Value) (bool, error) {
		if v != cty.NilVal {
			return true, nil
		}
		name, _ := path[0].(cty.GetAttrStep)
		return false, fmt.Errorf("var.%s: the value is or contains cty.NilVal; pass another value, for example cty.NullVal, or "+
			"leave the variable out", outside.Line(name.Name, maxName))
	})
}

// Read reads and merges layers. Nil layers are empty.
func Read[L Layer](o Options, layers []L) (*Config, error) {
	var parsed []*Config
	var errs fault.List
	for _, l := range layers {
		if any(l) == nil {
			continue
		}
		c, err := l.read(o)
		if found, ok := errors.AsType[fault.List](err); ok {
			errs = append(errs, found...)
		} else if err != nil {
			errs = append(errs, err)
		}
		parsed = append(parsed, c)
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return Merge(parsed...), nil
}

// For returns options with the tables of all kinds in a registry. The tables include the attributes
// that every entry may have.
func For(keyProviders []driver.Block[driver.KeyProvider], methods []driver.Block[driver.Method]) Options {
	var o Options
	for _, b := range keyProviders {
		b.Attrs = slices.Concat(b.Attrs, entries.KeyProviderAttrs())
		o.KeyProviders = append(o.KeyProviders, b.Table)
	}
	for _, b := range methods {
		if b.OwnFormat != nil {
			b.Attrs = slices.Concat(b.Attrs, entries.FileMethodAttrs())
		}
		o.Methods = append(o.Methods, b.Table)
	}
	return o
}

// over returns the setting s, which replaces earlier. If TF_ENCRYPTION only repeats a setting of
// the configuration, the result still counts as a setting of the configuration.
func over(s, earlier entries.Setting) entries.Setting {
	same := s.Err == nil && earlier.Err == nil && isSame(s.Value, earlier.Value)
	s.FromEnvironment = s.FromEnvironment && !(same && !earlier.FromEnvironment)
	s.Replaces = earlier.IsSet() && (!same || earlier.Replaces)
	return s
}

// isSame reports whether two values are equal, or both absent.
func isSame(a, b cty.Value) bool {
	if a.IsNull() || b.IsNull() {
		return a.IsNull() && b.IsNull()
	}
	return a.RawEquals(b)
}

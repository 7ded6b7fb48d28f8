package entries

import (
	"errors"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
)

// Entry is one undecoded block as the user wrote it: a key provider, a method, a source or
// credentials. A mistake is recorded on its attribute, so that an unused entry does no harm and a
// later layer can correct the mistake.
type Entry struct {
	Address  string             // such as "key_provider.pbkdf2.main"; the path for a block without a name
	Kind     string             // such as "pbkdf2"
	Settings map[string]Setting // settings by attribute name
	Err      error              // why the whole entry cannot be used, such as an unknown kind
	Pos      attr.Pos

	FromEnvironment bool // whether the entry is written only in TF_ENCRYPTION, not in the configuration
}

// Setting is one attribute as written. It has a value, or the reason why there is none.
type Setting struct {
	Value cty.Value // may be null or unknown; for a reference, the address
	Err   error
	Pos   attr.Pos

	FromEnvironment bool // whether only TF_ENCRYPTION or a variable gives the value, not the configuration
	UsesVariables   bool // whether the text uses var.*, whose values come from the configuration
	Replaces        bool // whether an earlier layer set another value
}

// IsSet reports whether the user set a value. False and "" do not count, because Terraform passes
// an absent variable as "".
func (s Setting) IsSet() bool {
	switch v := s.Value; {
	case s.Err != nil:
		return true
	case v == cty.NilVal || v.IsNull():
		return false
	case !v.IsKnown():
		return true
	case v.Type() == cty.String:
		return v.AsString() != ""
	case v.CanIterateElements():
		return v.LengthInt() > 0
	}
	return !s.Value.RawEquals(cty.False)
}

// fills reports whether s gives a value to the attribute a, so that no environment variable does.
// False is a value although it does not count as set. So is an empty string if the form of a allows
// it.
func (s Setting) fills(a attr.Attr) bool {
	if s.IsSet() {
		return true
	}
	return s.Value != cty.NilVal && !s.Value.IsNull() && (isEmptyToo(a) || s.Value.Type() == cty.Bool)
}

// NewEntry makes an entry from a table and the values of its attributes by name, such as the
// arguments of a Terraform block. Values may be unknown or null, and a nested block is an object.
// Mistakes in a value are reported when the entry is used.
func NewEntry(address string, table attr.Table, values map[string]cty.Value) *Entry {
	e := &Entry{Address: address, Kind: table.Name, Settings: map[string]Setting{}}
	for name, v := range values {
		if !v.IsNull() {
			a, _ := table.Attr(name)
			e.Settings[name] = Setting{Value: v, Err: checkAddress(address, a, v)}
		}
	}
	return e
}

// IsWrong reports whether the setting at a path is a mistake that no variable can correct.
func (e *Entry) IsWrong(t attr.Table, path string) bool {
	_, err := e.Resolve(t, Scope{})
	isHere := func(err error) bool {
		mistake, ok := errors.AsType[*attr.Error](err)
		return ok && mistake.Attr == path && !mistake.Unknown
	}
	return slices.ContainsFunc(fault.All(err), isHere) &&
		slices.ContainsFunc(e.written(t), func(g Given) bool { return g.Path == path && g.IsSet() })
}

// checkAddress returns an error if an attribute should be the address of a key provider or a
// method, but its value is not an address.
func checkAddress(address string, a attr.Attr, v cty.Value) error {
	err := addressOf(a).Wrong(cty.StringVal(textOf(v)))
	if err == nil || !v.IsKnown() {
		return nil
	}
	return &attr.Error{Address: address, Attr: a.Name, Err: err}
}

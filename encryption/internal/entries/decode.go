package entries

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// decode decodes the attributes of an entry or, if within is set, of the nested block that within
// names.
func (r resolver) decode(
	address, within string, attrs []attr.Attr, settings map[string]Setting, pos attr.Pos,
) (*values, error) {
	v := &values{
		address: address, within: within, attrs: map[string]cty.Value{}, blocks: map[string]*values{}, pos: map[string]attr.Pos{"": pos},
		resolver: r, variables: map[string]string{}, layered: map[string]bool{},
	}
	var errs fault.List
	groups := groupsOf(attrs, settings)
	for _, a := range attrs {
		v.pos[a.Name], v.layered[a.Name] = settings[a.Name].Pos, settings[a.Name].FromEnvironment
		if err := v.set(a, settings[a.Name], groups); err != nil {
			errs = append(errs, fault.All(err)...) // a block may have several errors
		}
	}
	if len(errs) == 0 {
		errs = v.checkCompany(attrs, settings)
	}
	return v, errs.Err()
}

// set decodes one attribute, which may be absent.
func (v *values) set(a attr.Attr, s Setting, g groups) (err error) {
	switch {
	case s.Err != nil:
		return s.Err
	case !s.Value.IsWhollyKnown():
		return &attr.Error{Address: v.address, Attr: v.path(a.Name), Pos: s.Pos, Unknown: true, Err: errors.New("the value is not known yet")}
	case a.Attrs != nil:
		return v.setBlock(a, s)
	case !s.fills(a):
		if s.Value, err = v.fill(a, s.Value, g); err != nil {
			return err
		}
	}
	v.given = append(v.given, Given{a, s, v.path(a.Name), v.within, v.variables[a.Name]})
	switch {
	case !s.Value.IsNull():
		if v.attrs[a.Name], err = convert.Convert(s.Value, a.Type); err != nil {
			text := "the value must be " + friendly(a.Type)
			if a.Type.IsListType() && s.Value.Type() == cty.String {
				text += " in square brackets"
			}
			return v.Errorf(a.Name, "%s", text)
		}
		if err := misfit(a, v.attrs[a.Name], v.variables[a.Name]); err != nil {
			return v.Errorf(a.Name, "%w", err)
		}
	case a.Required && a.Excludes == nil && !v.resolver.OnlyEnvironment:
		return v.Errorf(a.Name, "this argument is required%s%s", orEnv(a.Env), briefly(a.Doc))
	default:
		v.attrs[a.Name] = cty.NullVal(a.Type)
	}
	return nil
}

// misfit returns an error if a value does not meet the requirements of its table. The error does
// not contain the value.
func misfit(a attr.Attr, v cty.Value, variable string) error {
	err := unfit(a, v, variable)
	if err != nil && a.Secrecy == attr.Public && slices.ContainsFunc(textsIn(v), recognize.IsDocument) {
		return fmt.Errorf("%w. The value is the content of a file", err)
	}
	return err
}

func unfit(a attr.Attr, v cty.Value, variable string) error {
	if isEmpty(v) && !isEmptyToo(a) && !a.Required && a.Default == cty.NilVal {
		return nil
	}
	if err := cmp.Or(checkOf(a, variable).Wrong(v), a.Check.Wrong(v)); err != nil || a.Type != cty.Number {
		return err
	}
	return attr.Between(math.MinInt64, math.MaxInt64).Wrong(v)
}

// alone is the error for one of two attributes that require each other.
const alone = "the argument %s has no value, but the argument %s has one; set both, or neither"

// checkCompany returns errors for attributes that must not be set together, or must not be set
// alone.
func (v *values) checkCompany(attrs []attr.Attr, settings map[string]Setting) (errs fault.List) {
	has := func(name string) bool { return !isEmpty(v.attrs[name]) || v.blocks[name] != nil }
	written := func(name string) bool { // an empty block counts as written; a text that means false does not
		s := settings[name]
		isBlock := v.blocks[name] != nil && s.Value != cty.NilVal && !s.Value.IsNull()
		return isBlock || s.IsSet() && (v.attrs[name] == cty.NilVal || !v.attrs[name].RawEquals(cty.False))
	}
	for _, a := range attrs {
		isSet := written(a.Name)
		for _, other := range a.Excludes {
			if isSet && written(other) {
				errs = append(errs, v.Errorf(a.Name, "%s and %s are mutually exclusive; set one of them", other, a.Name))
			}
		}
		some := slices.Concat([]string{a.Name}, a.Excludes)
		if last := len(some) - 1; a.Required && last > 0 && !v.resolver.OnlyEnvironment && !slices.ContainsFunc(some, has) {
			errs = append(errs, v.Errorf("", "the arguments %s and %s have no value; set one of them, or check whether a variable "+
				"is empty", strings.Join(some[:last], ", "), some[last]))
		}
		other, _ := attr.Table{Attrs: attrs}.Attr(a.RequiredWith)
		isMutual := other.RequiredWith == a.Name
		switch {
		case other.Name == "" || has(other.Name) || !isSet && !(isMutual && has(a.Name)):
		case !isMutual:
			errs = append(errs, v.Errorf(other.Name, "this argument is required, because the argument %s is set", a.Name))
		case v.variables[a.Name] != "": // the error names the variable
			errs = append(errs, v.Errorf(a.Name, alone, other.Name, a.Name))
		default:
			errs = append(errs, v.Errorf(other.Name, alone, other.Name, a.Name))
		}
	}
	return errs
}

func isEmpty(v cty.Value) bool {
	return v.IsNull() || v.IsKnown() && v.Type() == cty.String && v.AsString() == ""
}

// fill returns the value of an absent attribute. It is the value of an environment variable, or
// else the default, or else absent itself.
func (v *values) fill(a attr.Attr, absent cty.Value, g groups) (cty.Value, error) {
	switch name, text, err := v.resolver.variable(a, g); {
	case err != nil:
		return absent, v.Errorf(cmp.Or(a.StandsFor, a.Name), "%w", err)
	case name != "":
		v.variables[a.Name] = name
		return ofVariable(name, text, a.Type)
	case absent.IsNull():
		return a.Default, nil
	}
	return absent, nil
}

// ofVariable returns the value of an environment variable for an attribute of type t. A list gets
// the text as its only element.
func ofVariable(name, text string, t cty.Type) (cty.Value, error) {
	switch {
	case t.IsListType():
		return cty.ListVal([]cty.Value{cty.StringVal(text)}), nil
	case t == cty.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return cty.NilVal, &attr.Error{Err: fmt.Errorf("the environment variable %s must be true or false", name)}
		}
		return cty.BoolVal(b), nil
	}
	return cty.StringVal(text), nil
}

func (v *values) setBlock(a attr.Attr, s Setting) (err error) {
	switch {
	case !s.Value.IsNull():
		err = v.decodeBlock(a, s)
	case a.Default != cty.NilVal:
		err = v.decodeInside(a, nil, s.Pos)
	case a.Required && !v.resolver.OnlyEnvironment:
		err = v.Errorf(a.Name, "this block is required")
	}
	return err
}

func (v *values) decodeBlock(a attr.Attr, s Setting) error {
	if !s.Value.Type().IsObjectType() && !s.Value.Type().IsMapType() {
		return v.Errorf(a.Name, "the value must be a block")
	}
	settings := map[string]Setting{}
	written := s.Value.AsValueMap()
	for _, name := range slices.Sorted(maps.Keys(written)) {
		if _, ok := (attr.Table{Attrs: a.Attrs}).Attr(name); !ok {
			return v.Errorf(a.Name, "an argument named %q is not expected here%s", name, didYouMean(name, a.Attrs))
		}
		settings[name] = Setting{Value: written[name], Pos: s.Pos, FromEnvironment: s.FromEnvironment}
	}
	return v.decodeInside(a, settings, s.Pos)
}

func (v *values) decodeInside(a attr.Attr, settings map[string]Setting, pos attr.Pos) (err error) {
	v.blocks[a.Name], err = v.resolver.decode(v.address, v.within+a.Name+".", a.Attrs, settings, pos)
	v.given = append(v.given, v.blocks[a.Name].given...)
	return err
}

func didYouMean(name string, attrs []attr.Attr) string {
	names := make([]string, len(attrs))
	for i, a := range attrs {
		names[i] = a.Name
	}
	return syntax.Configured(name, names)
}

// briefly returns the first sentence of doc, for the end of an error message about a missing value.
func briefly(doc string) string {
	if doc == "" {
		return ""
	}
	return ". It is " + syntax.LowerFirst(syntax.FirstSentence(doc))
}

func orEnv(env []string) string {
	if len(env) == 0 {
		return ""
	}
	return " (or the environment variable " + strings.Join(env, " or ") + ")"
}

func friendly(t cty.Type) string {
	switch {
	case t.IsListType():
		return "a list of " + t.ElementType().FriendlyName() + "s"
	case t.IsMapType():
		return "a map of " + t.ElementType().FriendlyName() + "s"
	case t == cty.Bool:
		return "true or false"
	default:
		return "a " + t.FriendlyName()
	}
}

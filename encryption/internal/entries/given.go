package entries

import (
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
)

// Given is an attribute of an entry or of a nested block, with its setting.
type Given struct {
	attr.Attr
	Setting
	Path     string // such as "token" or "auth_jwt.jwt"
	block    string // the nested block that contains the attribute, such as "auth_jwt."; "" for the entry itself
	Variable string // the environment variable that sets the attribute; "" if there is none
}

// attributes returns the attributes of v with their settings, whether valid or not.
func attributes(v attr.Values) []Given {
	if v, ok := v.(*values); ok {
		return v.given
	}
	return nil
}

// Oddity is a probable mistake in a text, such as a line break at the end of a passphrase. It may
// also be a setting whose value TF_ENCRYPTION replaces.
type Oddity struct {
	Address  string // address of the entry; "" for the arguments of a data source or a block of credentials
	Attr     string
	Variable string // the environment variable that the value comes from; errors name it instead of Address and Attr
	What     string // such as "ends with a line break"
	Pos      attr.Pos
	Sure     recognize.Certainty // always Perhaps, except for passphrases and replaced values
}

// Suspect converts an oddity to a fact that accompanies errors.
func (o Oddity) Suspect() fault.Suspect {
	setting := "the argument " + o.Attr
	switch {
	case o.Variable != "":
		setting = "the environment variable " + o.Variable
	case o.Address != "":
		setting = fmt.Sprintf("the %s of %s", o.Attr, o.Address)
	}
	return fault.Suspect{Setting: setting, What: o.What}
}

// Oddities returns the oddities in all values of an entry, including values in blocks and lists,
// and values that come from environment variables.
func Oddities(v attr.Values) (all []Oddity) {
	for _, g := range attributes(v) {
		add := func(what string, sure recognize.Certainty) {
			odd := Oddity{Attr: g.Path, Variable: g.Variable, What: what, Pos: g.Pos, Sure: sure}
			if what != "" && !slices.Contains(all, odd) {
				all = append(all, odd)
			}
		}
		for _, text := range textsIn(g.Value) {
			add(g.oddity(text))
		}
		if g.Replaces && g.FromEnvironment {
			add("comes from TF_ENCRYPTION and overrides the other settings; unset TF_ENCRYPTION if it is for another file",
				recognize.Surely)
		}
	}
	return all
}

// textsIn returns all strings in a value: the value itself, or its elements at any depth.
func textsIn(v cty.Value) (texts []string) {
	if v == cty.NilVal {
		return nil
	}
	_ = cty.Walk(v, func(_ cty.Path, part cty.Value) (bool, error) {
		if part.IsKnown() && !part.IsNull() && part.Type() == cty.String {
			texts = append(texts, part.AsString())
		}
		return true, nil
	})
	return texts
}

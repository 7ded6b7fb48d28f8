package source

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// withOddities adds to the error of a read what is probably not meant in what a request
// and the blocks of credentials say, for a place, as its source names it. No value is shown.
func (k Kind) withOddities(err error, place string, req Request, credentials []*attr.Entry, env attr.LookupEnv) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || syntax.EndsInRemedy(err.Error()) {
		return err
	}
	hint := func(subject, odd string) {
		missing, ok := IsMissing(err)
		if !ok {
			err = syntax.Hinted(err, subject, odd)
			return
		}
		with := *missing
		with.Mistaken = true
		with.Detail = syntax.Hinted(errors.New(missing.Detail), subject, odd).Error()
		err = &with
	}
	EachOddity(req.Values, k.Table.Attrs, hint)
	for _, a := range k.Table.Attrs {
		if _, missing := IsMissing(err); !missing || a.Type != cty.String {
			continue
		}
		text := req.String(a.Name)
		isPart := strings.Contains(place, strings.Trim(path.Clean(text), "/"))
		if isPart && namesWorkspace(text, req.OtherWorkspace()) {
			hint(a.Name, "has the name of the workspace in it, which is added to it anyway")
		}
	}
	for _, block := range credentials {
		for _, name := range slices.Sorted(maps.Keys(block.Settings)) {
			for _, odd := range syntax.Oddities(block.Settings[name].Value) {
				hint(name+" in credentials", odd)
			}
			if odd := oddToken(name, block.Settings[name].Value); odd != "" {
				hint(name+" in credentials", odd)
			}
		}
	}
	for _, name := range slices.Concat(variables(k.Table.Attrs, k.Credentials.Attrs), k.Ambient) {
		value, _ := env.Get(name)
		if odd, _ := syntax.Oddity(value); odd != "" {
			hint("the environment variable "+name, syntax.OfVariable(odd))
		}
	}
	return err
}

// variables are those that the tables name.
func variables(tables ...[]attr.Attr) (names []string) {
	for _, attrs := range tables {
		for _, a := range attrs {
			names = append(append(names, a.Env...), variables(a.Attrs)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// namesWorkspace reports whether a part of a path is or ends with the name of a workspace.
func namesWorkspace(text, workspace string) bool {
	return workspace != "" && slices.ContainsFunc(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("/:;", r) }),
		func(part string) bool { return part == workspace || part == workspace+".tfstate" })
}

// oddToken says what is odd about a token.
func oddToken(name string, v cty.Value) string {
	v, _ = v.Unmark()
	if !strings.HasSuffix(name, "token") || v == cty.NilVal || v.Type() != cty.String || !v.IsKnown() || v.IsNull() {
		return ""
	}
	return keyfile.OddToken(v.AsString())
}

// EachOddity finds the arguments of a table that are probably not what was meant.
func EachOddity(v attr.Values, attrs []attr.Attr, hint func(name, odd string)) {
	for _, a := range attrs {
		if block, nested := v.Block(a.Name); nested {
			EachOddity(block, a.Attrs, hint)
		} else if a.Type == cty.String && v.Has(a.Name) {
			if odd, _ := syntax.Oddity(v.String(a.Name)); odd != "" {
				hint(a.Name, odd)
			}
		}
	}
}

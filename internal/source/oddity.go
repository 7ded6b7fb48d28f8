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
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fact"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
)

// withSuspects is the error of a read, beside what is probably not meant in what a request
// and the blocks of credentials say, for a place, as its source names it. No value is in it.
func (k Kind) withSuspects(err error, place string, req Request, credentials []*unstable.Entry, env attr.LookupEnv) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	missing, isMissing := IsMissing(err)
	if !isMissing {
		if _, lacks := fact.Find[fact.NoBlock](err); lacks {
			return err
		}
		return fact.Later(err, func() []fact.Fact { return k.suspects(req, credentials, env) })
	}
	facts := k.suspects(req, credentials, env)
	for _, a := range k.Table.Attrs {
		if a.Type != cty.String {
			continue
		}
		text := req.String(a.Name)
		if strings.Contains(place, strings.Trim(path.Clean(text), "/")) && namesWorkspace(text, req.OtherWorkspace()) {
			facts = append(facts, fact.Suspect{Attr: a.Name, What: "has the name of the workspace in it, which is added to it anyway"})
		}
	}
	with := *missing
	with.Mistaken = with.Mistaken || len(facts) > 0
	with.reason = fact.With(errors.New(missing.Detail), facts...)
	return &with
}

func (k Kind) suspects(req Request, credentials []*unstable.Entry, env attr.LookupEnv) (facts []fact.Fact) {
	EachOddity(req.Values, k.Table.Attrs, func(name, odd string) { facts = append(facts, fact.Suspect{Attr: name, What: odd}) })
	for _, block := range credentials {
		for _, name := range slices.Sorted(maps.Keys(block.Settings)) {
			a, _ := k.Credentials.Attr(name)
			for _, what := range unstable.Oddities(a, block.Settings[name].Value) {
				facts = append(facts, fact.Suspect{Address: "credentials", Attr: name, What: what})
			}
		}
	}
	for _, name := range slices.Concat(variables(k.Table.Attrs, k.Credentials.Attrs), k.Ambient) {
		value, _ := env.Get(name)
		if odd := recognize.OddVariable(value); odd != "" {
			facts = append(facts, fact.Suspect{Variable: name, What: odd})
		}
	}
	return facts
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

// EachOddity finds the arguments of a table that are probably not what was meant.
func EachOddity(v attr.Values, attrs []attr.Attr, hint func(name, odd string)) {
	for _, a := range attrs {
		if block, nested := v.Block(a.Name); nested {
			EachOddity(block, a.Attrs, hint)
		} else if a.Type == cty.String && v.Has(a.Name) {
			if odd, _ := recognize.Oddity(v.String(a.Name)); odd != "" {
				hint(a.Name, odd)
			}
		}
	}
}

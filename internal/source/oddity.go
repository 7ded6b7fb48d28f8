package source

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
)

// withSuspects adds to the error of a read the probable mistakes in a request and in the blocks of
// credentials for a place. It shows no values.
func (k Kind) withSuspects(err error, place string, req Request, credentials []*unstable.Entry, env attr.LookupEnv) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	missing, isMissing := IsMissing(err)
	if !isMissing {
		if fault.Has[fault.NoBlock](err) {
			return err
		}
		return fault.Later(err, func() []fault.Fact { return k.suspects(req, credentials, env) })
	}
	facts := k.suspects(req, credentials, env)
	for _, a := range k.Table.Attrs {
		if a.Type != cty.String {
			continue
		}
		text := req.String(a.Name)
		if strings.Contains(place, strings.Trim(path.Clean(text), "/")) && namesWorkspace(text, req.OtherWorkspace()) {
			facts = append(facts, fault.Suspect{Setting: a.Name, What: "has the name of the workspace in it, which is added to it anyway"})
		}
	}
	with := *missing
	with.Mistaken = with.Mistaken || len(facts) > 0
	with.reason = fault.Later(errors.New(missing.Detail), func() []fault.Fact { return facts })
	return &with
}

func (k Kind) suspects(req Request, credentials []*unstable.Entry, env attr.LookupEnv) (facts []fault.Fact) {
	add := func(where string, values attr.Values) {
		for _, odd := range unstable.Oddities(values) {
			suspect := odd.Suspect()
			suspect.Setting += where
			facts = append(facts, suspect)
		}
	}
	add("", req.Values)
	for _, block := range credentials { // an invalid block has oddities, too
		values, _ := block.Resolve(k.Credentials, unstable.Scope{})
		add(" in credentials", values)
	}
	values, _ := unstable.NewEntry("", k.Credentials, nil).Resolve(k.Credentials, unstable.Scope{Lookup: env, OnlyEnvironment: true})
	add("", values) // by the names of variables
	for _, name := range k.Ambient {
		value, _ := env.Get(name)
		if odd := recognize.Text(value, recognize.Value).Said(name); odd != "" {
			facts = append(facts, fault.Suspect{Setting: "the environment variable " + name, What: odd})
		}
	}
	return facts
}

// namesWorkspace reports whether a part of a path is or ends with the name of a workspace.
func namesWorkspace(text, workspace string) bool {
	return workspace != "" && slices.ContainsFunc(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("/:;", r) }),
		func(part string) bool { return part == workspace || part == workspace+".tfstate" })
}

// Oddities returns the probable mistakes in values that the error said does not mention, each with
// the name of its attribute.
func Oddities(said error, v attr.Values) (all []string) {
	err := fault.Later(said, func() (facts []fault.Fact) {
		for _, odd := range unstable.Oddities(v) {
			facts = append(facts, odd.Suspect())
		}
		return facts
	})
	for _, f := range fault.In(err) {
		if odd, ok := f.(fault.Suspect); ok {
			all = append(all, odd.Setting+" "+odd.What)
		}
	}
	return all
}

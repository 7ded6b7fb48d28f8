package provider

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/tfstate"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/address"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// acceptMissing returns an error if the state is missing and the user has not asked for the defaults instead.
func (r remoteStateRequest) acceptMissing(s *openedState) error {
	if s.missing == nil || r.defaultsIfMissing {
		return nil
	}
	if s.missing.Mistaken {
		return s.missing
	}
	advice := fmt.Sprintf(`. Check the %s block; if no state is expected there, set on_missing = "defaults"`, r.kind.Name)
	if r.object != nil { // the block is correct, because the object exists
		advice = `. If no state is expected there, set on_missing = "defaults"`
	}
	return fault.With(r.about(s.missing), advice)
}

// result returns the attributes of the data source: the outputs of the state, and the defaults of outputs
// that the state does not have.
func (r remoteStateRequest) result(s *openedState) (*result, error) {
	state := s.State
	if s.missing != nil {
		state = &tfstate.State{}
	}
	wanted, err := r.wanted(state.Outputs)
	if err != nil {
		return nil, err
	}
	plain, sensitive, err := r.values(state, wanted)
	if err != nil {
		return nil, err
	}
	got := &result{attributes: s.header(), warnings: s.warnings()}
	got.attributes["exists"] = cty.BoolVal(s.missing == nil)
	got.attributes["outputs"] = cty.ObjectVal(plain)
	if r.keepSensitive {
		got.attributes["sensitive_outputs"] = cty.ObjectVal(sensitive)
	}
	got.describe(state.Outputs, wanted)
	r.warnOfDefaults(got, state.Outputs, wanted)
	if s.missing != nil {
		used := "The defaults are used instead of its outputs."
		if len(plain)+len(sensitive) == 0 {
			used = "There are no defaults, so there are no outputs; set the argument defaults."
		}
		got.warn(warnDefaults, "%s %s", readerOf(nil).tell(r.about(s.missing)), used)
	}
	return got, nil
}

// warnDefaults is the title of the warning that a state is missing.
const warnDefaults = "Defaults in place of a state"

// values decodes the outputs and separates sensitive ones from the others. A default never replaces an output
// that the state has, sensitive or not.
func (r remoteStateRequest) values(state *tfstate.State, wanted []string) (plain, sensitive map[string]cty.Value, err error) {
	plain, sensitive = map[string]cty.Value{}, map[string]cty.Value{}
	for _, name := range wanted {
		if _, ok := state.Outputs[name]; !ok {
			addDefault(plain, r.defaults, name)
			addDefault(sensitive, r.sensitiveDefaults, name)
		}
	}
	given := r.given(state, wanted)
	if err := checkSize(state, given, maxMessage); err != nil {
		return nil, nil, err
	}
	decoded, err := state.Values(given...)
	if errors.Is(err, tfstate.ErrCost) {
		err = fmt.Errorf("%w. If the output is not needed, list the other outputs in the argument only", err)
	}
	for name, v := range decoded {
		into := plain
		if state.Outputs[name].Sensitive {
			into = sensitive
		}
		into[name] = v
	}
	return plain, sensitive, err
}

// warnOfDefaults warns about defaults that are probably in the wrong argument or have the wrong name. It warns
// if the state has the output with a different sensitivity, or has an output with a similar name. Names are
// compared only if the state lacks a wanted output, which is rare.
func (r remoteStateRequest) warnOfDefaults(got *result, stored map[string]tfstate.Output, wanted []string) {
	for _, name := range wanted {
		if place := r.elsewhere(stored, name); place != "" {
			got.warn("Unused default of an output", "A default is set for %s, but the state %s.", outside.Quoted(name, maxName), place)
		}
	}
	missing := slices.DeleteFunc(slices.Clone(wanted), func(name string) bool { _, ok := stored[name]; return ok })
	if len(missing) == 0 {
		return
	}
	separators := strings.NewReplacer("_", "", "-", "")
	plainly := func(name string) string { return strings.ToLower(separators.Replace(name)) }
	meant := map[string]string{}
	for name := range stored {
		plain := plainly(name)
		if other, found := meant[plain]; !found || name < other {
			meant[plain] = name
		}
	}
	for _, name := range missing {
		if other, found := meant[plainly(name)]; found {
			got.warn("Default with another name", "A default is set for %s, but the state has no such output. Did you mean %s?",
				outside.Quoted(name, maxName), outside.Quoted(other, maxName))
		}
	}
}

// elsewhere returns a clause for a warning that explains where the output is. It returns an empty string if
// the output's default is in the right argument.
func (r remoteStateRequest) elsewhere(stored map[string]tfstate.Output, name string) string {
	output, ok := stored[name]
	_, plain := r.defaults[name]
	_, sensitive := r.sensitiveDefaults[name]
	switch {
	case ok && plain && output.Sensitive && r.keepSensitive:
		return "marks this output as sensitive, so the output is in sensitive_outputs; set the default in sensitive_defaults"
	case ok && plain && output.Sensitive:
		return "marks this output as sensitive, so neither the output nor the default is used; read it with the ephemeral resource " +
			"statecrypt_remote_state, or set store_sensitive = true and move the default to sensitive_defaults"
	case ok && sensitive && !output.Sensitive:
		return "does not mark this output as sensitive, so the output is in outputs; set the default in the argument defaults"
	}
	return ""
}

// given returns the names of the outputs whose values the data source returns. It omits sensitive outputs
// unless keepSensitive is set.
func (r remoteStateRequest) given(state *tfstate.State, wanted []string) []string {
	var names []string
	for _, name := range wanted {
		if o, ok := state.Outputs[name]; ok && (r.keepSensitive || !o.Sensitive) {
			names = append(names, name)
		}
	}
	return names
}

// describe sets sensitive_output_names and warns about deprecated outputs.
func (r *result) describe(stored map[string]tfstate.Output, wanted []string) {
	var sensitive, deprecated []string
	for _, name := range wanted {
		output := stored[name]
		if output.Sensitive {
			sensitive = append(sensitive, name)
		}
		if output.Deprecated != "" {
			deprecated = append(deprecated, fmt.Sprintf("\n  - %s: %s", outside.Quoted(name, maxName), outside.Quoted(output.Deprecated, maxName)))
		}
	}
	r.attributes["sensitive_output_names"] = stringList(sensitive)
	if deprecated != nil {
		r.warn("Deprecated outputs", "The configuration that owns the state marks these outputs as deprecated:%s",
			strings.Join(deprecated, ""))
	}
}

// wanted returns the sorted names of the requested outputs. Without the argument "only", these are all
// outputs in the state and all defaults.
func (r remoteStateRequest) wanted(stored map[string]tfstate.Output) ([]string, error) {
	names := slices.AppendSeq(slices.Collect(maps.Keys(stored)), maps.Keys(r.defaults))
	names = slices.AppendSeq(names, maps.Keys(r.sensitiveDefaults))
	slices.Sort(names)
	names = slices.Compact(names)
	if r.only == nil {
		return names, nil
	}
	for _, name := range r.only {
		if _, found := slices.BinarySearch(names, name); !found {
			return nil, fmt.Errorf("`only` contains the name %s, but neither the state nor the defaults have an output of that name%s",
				outside.Quoted(name, maxName), nearOutputs(name, names))
		}
		if stored[name].Sensitive && !r.keepSensitive {
			return nil, fmt.Errorf("`only` contains the name %s, but the state marks that output as sensitive; read it with the ephemeral "+
				"resource statecrypt_remote_state, or set store_sensitive = true", outside.Quoted(name, maxName))
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(r.only))), nil
}

// nearOutputs returns a hint that suggests the output that the user probably meant. The name may also be a
// reference to an output or to a part of one. If no output is similar, the hint lists up to 5 names.
func nearOutputs(name string, names []string) string {
	whole, _, _ := strings.Cut(strings.TrimPrefix(name, "outputs."), ".")
	whole, _, _ = strings.Cut(whole, "[")
	if suggestion := cmp.Or(syntax.Suggest(name, names), syntax.Suggest(whole, names)); suggestion != "" {
		return suggestion
	}
	if _, err := address.Parse(name); err == nil {
		return ". This looks like the address of a resource; read resources with the data source statecrypt_resource"
	}
	const most = 5
	var shown []string
	for _, name := range names[:min(len(names), most)] {
		shown = append(shown, outside.Quoted(name, maxName))
	}
	switch {
	case len(names) == 0:
		return ", or any other output; check which state is read"
	case len(names) > most:
		shown = append(shown, "others")
	}
	return "; the outputs are " + strings.Join(shown, ", ")
}

// maxMessage is the maximum size of all outputs in a protocol message, in bytes: 256 MiB, less some room for
// the other attributes.
const maxMessage = 255 << 20

// checkSize returns an error if the outputs are larger than limit, in bytes.
func checkSize(state *tfstate.State, names []string, limit int) error {
	size := 0
	for _, name := range names {
		size += state.Outputs[name].Size()
	}
	if size > limit {
		return fmt.Errorf("the outputs are %d bytes long, but Terraform's plugin protocol allows at most %d; "+
			"list the outputs that you need in the argument only", size, limit)
	}
	return nil
}

func addDefault(into, defaults map[string]cty.Value, name string) {
	if v, ok := defaults[name]; ok {
		into[name] = v
	}
}

func stringList(names []string) cty.Value {
	if len(names) == 0 {
		return cty.ListValEmpty(cty.String)
	}
	values := make([]cty.Value, len(names))
	for i, n := range names {
		values[i] = cty.StringVal(n)
	}
	return cty.ListVal(values)
}

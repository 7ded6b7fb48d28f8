package provider

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/tfstate"
)

// acceptMissing decides whether to go on without a state.
func (r remoteStateRequest) acceptMissing(s *openedState) error {
	if s.missing == nil || r.defaultsIfMissing {
		return nil
	}
	return fmt.Errorf("%w%s; if that is expected, set on_missing = \"defaults\"", s.missing, r.sent(s.missing))
}

// outputs splits the state's outputs by their sensitivity and lays them over
// the defaults. A default never stands in for an output that the state has,
// sensitive or not.
func (r remoteStateRequest) outputs(s *openedState) (*result, error) {
	plain, sensitive := map[string]cty.Value{}, map[string]cty.Value{}
	var sensitiveNames, deprecated []string
	var stored map[string]tfstate.Output
	if s.missing == nil {
		stored = s.Outputs
	}
	wanted, err := r.wanted(stored)
	if err != nil {
		return nil, err
	}
	if err := r.checkSize(stored, wanted, maxMessage); err != nil {
		return nil, err
	}
	for _, name := range wanted {
		output, ok := stored[name]
		if !ok {
			addDefault(plain, r.defaults, name)
			addDefault(sensitive, r.sensitiveDefaults, name)
			continue
		}
		if output.Deprecated != "" {
			deprecated = append(deprecated, fmt.Sprintf("\n  - %s: %s", outside.Quoted(name, maxName), outside.Quoted(output.Deprecated, maxName)))
		}
		into := plain
		if output.Sensitive {
			sensitiveNames = append(sensitiveNames, name)
			if into = sensitive; !r.keepSensitive {
				continue
			}
		}
		if into[name], err = output.Value(); err != nil {
			return nil, err
		}
	}
	got := &result{attributes: s.header()}
	got.attributes["exists"] = cty.BoolVal(s.missing == nil)
	got.attributes["outputs"] = cty.ObjectVal(plain)
	got.attributes["sensitive_outputs"] = cty.NullVal(cty.DynamicPseudoType)
	if r.keepSensitive {
		got.attributes["sensitive_outputs"] = cty.ObjectVal(sensitive)
	}
	got.attributes["sensitive_output_names"] = stringList(sensitiveNames)
	if s.missing != nil {
		got.warn("Defaults in place of a state", "%v%s. The defaults stand in for its outputs.", s.missing, r.sent(s.missing))
	}
	if deprecated != nil {
		got.warn("Deprecated outputs", "The configuration that owns the state marks these outputs as deprecated:%s", strings.Join(deprecated, ""))
	}
	return got, nil
}

// wanted returns the names of the outputs to give, sorted: those of only, else
// all that the state or the defaults have.
func (r remoteStateRequest) wanted(stored map[string]tfstate.Output) ([]string, error) {
	all := map[string]bool{}
	for name := range stored {
		all[name] = true
	}
	for name := range r.defaults {
		all[name] = true
	}
	for name := range r.sensitiveDefaults {
		all[name] = true
	}
	names := slices.Sorted(maps.Keys(all))
	if r.only == nil {
		return names, nil
	}
	for _, name := range r.only {
		if !all[name] {
			return nil, fmt.Errorf("the argument only names the output %s, which neither the state nor the defaults have%s",
				outside.Quoted(name, maxName), attr.Suggest(name, names))
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(r.only))), nil
}

// maxMessage is what the plugin protocol carries in one message, 256 MiB,
// less some room for all but the outputs.
const maxMessage = 255 << 20 // bytes

// checkSize counts what will be sent: not the sensitive outputs that are left
// out.
func (r remoteStateRequest) checkSize(stored map[string]tfstate.Output, wanted []string, limit int) error {
	size := 0
	for _, name := range wanted {
		if o := stored[name]; r.keepSensitive || !o.Sensitive {
			size += o.Size()
		}
	}
	if size > limit {
		return fmt.Errorf("the outputs are %d bytes long, and the plugin protocol of Terraform carries at most %d; name those that are needed in only", size, limit)
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

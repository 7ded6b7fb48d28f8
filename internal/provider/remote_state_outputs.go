package provider

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/tfstate"
)

// acceptMissing decides whether to go on without a state. Under a pin it is
// refused: a deletion is a rollback.
func (r stateRequest) acceptMissing(s *openedState) error {
	switch {
	case s.missing == nil:
		return nil
	case r.expectedLineage != "" || r.minimumSerial != nil:
		return fmt.Errorf("%w; expected_lineage or minimum_serial says that there must be one", s.missing)
	case !r.defaultsIfMissing:
		return fmt.Errorf("%w%s; if that is expected, set on_missing = \"defaults\"", s.missing, r.sent(s.missing))
	}
	return nil
}

// acceptPins checks the state against what the user pinned.
func (r stateRequest) acceptPins(s *openedState) error {
	switch {
	case s.missing != nil:
	case r.expectedLineage != "" && s.Lineage != r.expectedLineage:
		return fmt.Errorf("the state has the lineage %q, and expected_lineage says %q: this is another state", clip(s.Lineage), clip(r.expectedLineage))
	case r.minimumSerial != nil && s.Serial < *r.minimumSerial:
		return fmt.Errorf("the state has the serial %d, and minimum_serial says %d: this is an old copy", s.Serial, *r.minimumSerial)
	}
	return nil
}

// sent says whether credentials were sent, on sources that know any.
func (r stateRequest) sent(m *source.MissingError) string {
	switch {
	case m.CredentialsSent:
		return " (credentials were sent; some servers give the same answer when they do not allow access)"
	case r.kind.Credentials.Name != "":
		return " (no credentials were sent; some servers give the same answer when they need some)"
	}
	return ""
}

// outputs splits the state's outputs by their sensitivity and lays them over
// the defaults. A default never stands in for an output that the state has,
// sensitive or not.
func (r stateRequest) outputs(s *openedState) (*remoteState, error) {
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
			deprecated = append(deprecated, fmt.Sprintf("\n  - %q: %q", clip(name), clip(output.Deprecated)))
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
	result := &remoteState{attributes: s.header()}
	result.attributes["outputs"] = cty.ObjectVal(plain)
	result.attributes["sensitive_outputs"] = cty.NullVal(cty.DynamicPseudoType)
	if r.keepSensitive {
		result.attributes["sensitive_outputs"] = cty.ObjectVal(sensitive)
	}
	result.attributes["sensitive_output_names"] = stringList(sensitiveNames)
	if s.missing != nil {
		result.warn("Defaults in place of a state", "%v%s. The defaults stand in for its outputs.", s.missing, r.sent(s.missing))
	}
	if deprecated != nil {
		result.warn("Deprecated outputs", "The configuration that owns the state marks these outputs as deprecated:%s", strings.Join(deprecated, ""))
	}
	return result, nil
}

// wanted returns the names of the outputs to give, sorted: those of only, else
// all that the state or the defaults have.
func (r stateRequest) wanted(stored map[string]tfstate.Output) ([]string, error) {
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
			return nil, fmt.Errorf("the argument only names the output %q, which neither the state nor the defaults have%s", clip(name), config.Suggest(name, names))
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(r.only))), nil
}

// maxMessage is what the plugin protocol carries in one message, 256 MiB,
// less some room for all but the outputs.
const maxMessage = 255 << 20 // bytes

// checkSize counts what will be sent: not the sensitive outputs that are left
// out.
func (r stateRequest) checkSize(stored map[string]tfstate.Output, wanted []string, limit int) error {
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

// header returns the read-only attributes that describe the state itself.
func (s *openedState) header() map[string]cty.Value {
	out := map[string]cty.Value{
		"exists":            cty.BoolVal(s.missing == nil),
		"serial":            cty.NullVal(cty.Number),
		"lineage":           cty.NullVal(cty.String),
		"terraform_version": cty.NullVal(cty.String),
		"encrypted":         cty.NullVal(cty.Bool),
		"decrypted_with":    cty.NullVal(cty.String),
		"used_fallback":     cty.NullVal(cty.Bool),
		"revision":          orNull(s.revision),
	}
	if s.missing != nil {
		return out
	}
	out["serial"] = cty.NumberIntVal(s.Serial)
	out["lineage"] = orNull(s.Lineage)
	out["terraform_version"] = orNull(s.TerraformVersion)
	out["encrypted"] = cty.BoolVal(s.encrypted)
	out["used_fallback"] = cty.BoolVal(s.usedFallback)
	if s.encrypted {
		out["decrypted_with"] = cty.StringVal(s.method)
	}
	return out
}

func orNull(s string) cty.Value {
	if s == "" {
		return cty.NullVal(cty.String)
	}
	return cty.StringVal(s)
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

func (r *remoteState) warn(summary, format string, args ...any) {
	r.warnings = append(r.warnings, warning{summary, fmt.Sprintf(format, args...)})
}

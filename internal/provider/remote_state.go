package provider

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/outside"
)

// remoteStateRequest is statecrypt_remote_state as the user wrote it.
type remoteStateRequest struct {
	stateRequest

	only              []string // nil for all outputs
	defaults          map[string]cty.Value
	sensitiveDefaults map[string]cty.Value
	defaultsIfMissing bool

	keepSensitive bool // whether sensitive_outputs are filled
}

// remoteState is what the data source and the ephemeral resource share.
func (c catalog) remoteState(doc string, own ...field) reading {
	return newReading("statecrypt_remote_state", doc, slices.Concat(c.stateFields(), []field{
		argument("only", cty.List(cty.String), "The names of the outputs to give. One that neither the state nor the defaults have is an error. Defaults to all."),
		argument("defaults", cty.DynamicPseudoType, "An object of outputs to give where the state has none of that name. It never takes the place of an output that the state has, null and sensitive ones included."),
		secret(argument("sensitive_defaults", cty.DynamicPseudoType, "The same as `defaults`, for `sensitive_outputs`. Like every argument of a data source, it is stored in the state of the configuration that reads.")),
		argument("on_missing", cty.String, "`error`, or `defaults` to go on with the defaults and a warning when there is no state. A refusal, a timeout, a missing repository or branch, or a state that cannot be decrypted is always an error, as is a missing state under `expected_lineage` or `minimum_serial`. Defaults to `error`."),

		computed("outputs", cty.DynamicPseudoType, "An object of the outputs that are not marked as sensitive, with their exact types."),
		computed("sensitive_output_names", cty.List(cty.String), "The names of the outputs that are marked as sensitive, sorted."),
		computed("exists", cty.Bool, "Whether there is a state."),
	}, headerFields(), own), func(arguments cty.Value, env attr.LookupEnv) (request, []problem) {
		return c.remoteStateRequest(arguments, env)
	})
}

func (c catalog) remoteStateRequest(arguments cty.Value, env attr.LookupEnv) (remoteStateRequest, []problem) {
	d := c.requestDecoder(arguments, env)
	r := remoteStateRequest{stateRequest: d.state(), keepSensitive: d.keepsSensitive()}
	d.selection(&r)
	return r, d.problems
}

func (d *requestDecoder) selection(r *remoteStateRequest) {
	if v := d.block.GetAttr("only"); v.IsWhollyKnown() && !v.IsNull() {
		r.only = []string{}
		for _, name := range v.AsValueSlice() {
			if name.IsNull() {
				d.fail(path.Root("only"), "a name must not be null")
				continue
			}
			r.only = append(r.only, name.AsString())
		}
	}
	r.defaults = d.object("defaults")
	r.sensitiveDefaults = d.object("sensitive_defaults")
	for name := range r.defaults {
		if _, both := r.sensitiveDefaults[name]; both {
			d.fail(path.Root("defaults"), "%s stands in sensitive_defaults as well", outside.Quoted(name, maxName))
		}
	}
	switch v := d.block.GetAttr("on_missing"); {
	case !v.IsKnown() || v.IsNull() || v.AsString() == "error":
	case v.AsString() == "defaults":
		r.defaultsIfMissing = true
	default:
		d.fail(path.Root("on_missing"), `"error" or "defaults" is required`)
	}
}

// object reads an argument of dynamic type that must be an object or a map.
func (d *requestDecoder) object(name string) map[string]cty.Value {
	v := d.block.GetAttr(name)
	switch {
	case v.IsNull() || !v.IsWhollyKnown():
		return nil
	case !v.Type().IsObjectType() && !v.Type().IsMapType():
		// Without a path: at the path of an argument, Terraform prints its value.
		d.fail(path.Empty(), "%s must be an object of outputs", name)
		return nil
	}
	return v.AsValueMap()
}

func (r remoteStateRequest) read(ctx context.Context, provider *configured) (*result, error) {
	state, err := provider.open(ctx, r.stateRequest)
	if err != nil {
		return nil, err
	}
	if err := r.acceptMissing(state); err != nil {
		return nil, &stepError{step: stepFetch, source: state.source, err: err}
	}
	got, err := r.outputs(state)
	if err != nil {
		return nil, &stepError{step: stepParse, source: state.source, err: err}
	}
	got.warnings = slices.Concat(state.warnings, got.warnings)
	return got, nil
}

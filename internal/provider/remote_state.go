package provider

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
)

// remoteStateRequest is a request for statecrypt_remote_state.
type remoteStateRequest struct {
	stateRequest

	only              []string // names of the requested outputs; nil means all outputs
	defaults          map[string]cty.Value
	sensitiveDefaults map[string]cty.Value
	defaultsIfMissing bool

	keepSensitive bool // whether to fill sensitive_outputs
}

// remoteState returns statecrypt_remote_state, as a data source or as an ephemeral resource. The argument state has the
// result of stateFields.
func (c kinds) remoteState(as role, state []field) reading {
	sensitive := sensitiveFields(as, "outputs", "An object of the outputs that are marked as sensitive.")
	return reading{
		as:   as,
		name: "statecrypt_remote_state",
		doc: "Reads the outputs of a state from git, S3 or another source, and decrypts it if needed. " +
			as.doc(),
		codec:   newCodec(slices.Concat(state, outputFields(), headerFields(), sensitive)),
		kinds:   c,
		request: kinds.remoteStateRequest,
	}
}

func outputFields() []field {
	return []field{
		argument("only", cty.List(cty.String), "The names of the outputs to return; an empty list returns none. A name that neither the state "+
			"nor the defaults have is an error. Defaults to all."),
		argument("defaults", cty.DynamicPseudoType, "An object of outputs to return if the state has no output of that name. It never replaces "+
			"an output that the state has, not even a null or sensitive one."),
		secret(argument("sensitive_defaults", cty.DynamicPseudoType, "The same as `defaults`, for `sensitive_outputs`. A data source returns "+
			"these only with `store_sensitive`. A data source stores its arguments in your state; an ephemeral resource stores nothing.")),
		argument("on_missing", cty.String, "`error`, or `defaults` to continue with the defaults and a warning if there is no state. A "+
			"refusal, a timeout or a failed decryption is always an error. Defaults to `error`."),

		computed("outputs", cty.DynamicPseudoType, "An object of the outputs that are not marked as sensitive, with their exact "+
			"types."),
		computed("sensitive_output_names", cty.List(cty.String), "The names of the outputs that are marked as sensitive, sorted."),
		computed("exists", cty.Bool, "Whether there is a state."),
	}
}

func (c kinds) remoteStateRequest(block cty.Value, env attr.LookupEnv) (request, []problem) {
	a := &arguments{kinds: c, env: env, block: block}
	r := remoteStateRequest{stateRequest: a.state(), keepSensitive: a.keepsSensitive()}
	a.selection(&r)
	return r, a.problems
}

func (a *arguments) selection(r *remoteStateRequest) {
	if v := a.block.GetAttr("only"); v.IsWhollyKnown() && !v.IsNull() {
		r.only = []string{}
		for _, name := range v.AsValueSlice() {
			if name.IsNull() {
				a.fail(path.Root("only"), "a name in the list is null; remove it, or set the variable that it comes from")
				continue
			}
			r.only = append(r.only, name.AsString())
		}
	}
	r.defaults = a.outputs("defaults")
	r.sensitiveDefaults = a.outputs("sensitive_defaults")
	for name := range r.defaults {
		if _, both := r.sensitiveDefaults[name]; both {
			a.fail(path.Root("defaults"), "%s is also in sensitive_defaults; remove it from one of the two arguments", outside.Quoted(name, maxName))
		}
	}
	if keeps := a.block.Type().HasAttribute("store_sensitive"); len(r.sensitiveDefaults) > 0 && !r.keepSensitive && keeps &&
		a.block.GetAttr("store_sensitive").IsKnown() {
		a.fail(path.Empty(), "sensitive_defaults would be stored, but has no effect without store_sensitive = true; set store_sensitive, or "+
			"use the ephemeral resource statecrypt_remote_state")
	}
	switch v, ok := given(a.block, "on_missing"); {
	case !ok || v == "error":
	case v == "defaults":
		r.defaultsIfMissing = true
	default:
		a.fail(path.Root("on_missing"), `the value must be "error" or "defaults"`)
	}
}

// outputs returns the value of a dynamically typed argument, which must be an object or a map.
func (a *arguments) outputs(name string) map[string]cty.Value {
	v := a.block.GetAttr(name)
	switch {
	case v.IsNull() || !v.IsWhollyKnown():
		return nil
	case !v.Type().IsObjectType() && !v.Type().IsMapType():
		// The error has no path: given the path of an argument, Terraform prints its value.
		a.fail(path.Empty(), "the argument %s is not an object of output names and values; write it like { vpc_id = \"none\" }", name)
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
		return nil, state.failed(stepFetch, err)
	}
	got, err := r.result(state)
	if err != nil {
		return nil, state.failed(stepParse, err)
	}
	return got, nil
}

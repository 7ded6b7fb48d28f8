package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/address"
)

// resourceRequest is a request for statecrypt_resource.
type resourceRequest struct {
	stateRequest

	address       string // empty for the only resource in the state of a Kubernetes object
	keepSensitive bool   // whether to fill sensitive_attributes
}

// resource returns statecrypt_resource, as a data source or as an ephemeral resource. The argument state has the result
// of stateFields.
func (c kinds) resource(as role, state []field) reading {
	sensitive := sensitiveFields(as, "attributes", "The attributes that the state marks as sensitive, in the shape of "+
		"`attributes`: objects have only these, and tuples have null for what is not sensitive.")
	return reading{
		as:   as,
		name: "statecrypt_resource",
		doc: "Reads one resource from a state, decrypting it if need be. The sources and methods are those of " +
			"`statecrypt_remote_state`. " + as.doc(),
		codec:   newCodec(slices.Concat(state, resourceFields(), headerFields(), sensitive)),
		kinds:   c,
		request: kinds.resourceRequest,
	}
}

func resourceFields() []field {
	return []field{
		argument("address", cty.String, "The address of the resource in the state, such as `module.net[\"a\"].aws_vpc.main[0]`; without "+
			"the last index, all instances. Optional with `object` if the state has exactly one resource."),

		computed("attributes", cty.DynamicPseudoType, "The attributes as an object, with null for sensitive values. Without an index, a tuple "+
			"of such objects for `count`, or an object of them by key for `for_each`."),
		computed("provider_address", cty.String, "The address of the resource's provider, such as "+
			"`registry.terraform.io/hashicorp/aws`."),
		computed("schema_version", cty.Number, "The version of the provider's schema that the attributes follow; null if the "+
			"instances follow several."),
		computed("type", cty.String, "The type of the resource."),
		computed("mode", cty.String, "`managed` for a resource, `data` for a data source."),
	}
}

func (c kinds) resourceRequest(block cty.Value, env attr.LookupEnv) (request, []problem) {
	a := &arguments{kinds: c, env: env, block: block}
	r := resourceRequest{stateRequest: a.state(), keepSensitive: a.keepsSensitive()}
	r.resources = true
	a.address(&r)
	return r, a.problems
}

func (a *arguments) address(r *resourceRequest) {
	text := a.block.GetAttr("address")
	objects, known := blocks(a.block, "object")
	switch {
	case !text.IsKnown():
	case !text.IsNull() && text.AsString() == "":
		a.fail(path.Root("address"), "the address is empty; set a type and a name, for example aws_vpc.main")
	case !text.IsNull():
		r.address = text.AsString()
		if _, err := address.Parse(r.address); err != nil {
			a.fail(path.Root("address"), "%w", err)
		}
	case known && len(objects) == 0:
		a.fail(path.Empty(), "neither the argument address nor an object block is set; set one of them")
	}
}

func (r resourceRequest) read(ctx context.Context, provider *configured) (*result, error) {
	if err := provider.allowsResource(r); err != nil {
		return nil, &stepError{step: stepConfiguration, err: err}
	}
	state, err := provider.open(ctx, r.stateRequest)
	if err != nil {
		return nil, err
	}
	if state.missing != nil {
		return nil, state.failed(stepFetch, r.about(state.missing))
	}
	got, err := r.result(state)
	if err != nil {
		return nil, state.failed(stepResource, err)
	}
	return got, nil
}

// allowsResource returns an error unless the root module, which owns the keys, allows other modules to read
// this resource.
func (c *configured) allowsResource(req resourceRequest) error {
	switch {
	case c.unknown != nil:
		return c.unknown
	case req.object != nil:
		return nil
	case !c.resourceReads.IsKnown():
		return unknownError("allow_resource_reads")
	case c.resourceReads.IsNull() || c.resourceReads.False():
		return errors.New("reading resources is off, because any module could use this provider's keys to read the secrets of all resources; " +
			"if you trust all modules, set allow_resource_reads = true in the provider block")
	}
	return nil
}

// result returns the attributes of the resource, with the sensitive ones separate.
func (r resourceRequest) result(s *openedState) (*result, error) {
	found, err := s.Resource(r.address)
	if err != nil {
		return nil, err
	}
	if size := found.Size(); size > maxMessage {
		return nil, fmt.Errorf("the attributes are %d bytes long, but Terraform's plugin protocol allows at most %d; set the argument address "+
			"to one instance", size, maxMessage)
	}
	attributes, sensitive, err := found.Values()
	if err != nil {
		return nil, err
	}
	if r.object != nil && !found.Marked() {
		// The attributes may contain secrets of the cluster, and no attribute in this state is marked as
		// sensitive.
		attributes, sensitive = cty.NullVal(cty.DynamicPseudoType), attributes
	}
	out := s.header()
	out["attributes"] = attributes
	if r.keepSensitive {
		out["sensitive_attributes"] = sensitive
	}
	out["provider_address"] = orNull(found.Provider)
	if found.SchemaVersion != nil {
		out["schema_version"] = cty.NumberUIntVal(*found.SchemaVersion)
	}
	out["type"] = cty.StringVal(found.Type)
	out["mode"] = cty.StringVal(found.Mode)
	return &result{attributes: out, warnings: s.warnings()}, nil
}

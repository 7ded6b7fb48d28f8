package provider

import (
	"fmt"
	"math"
	"math/big"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

const defaultMaxSize = 512 << 20 // bytes

// remoteStateFields are the arguments and attributes that the data source and
// the ephemeral resource share.
func (c catalog) remoteStateFields() []field {
	var out []field
	for _, kind := range c.sources {
		out = append(out, atMostOne(many(kind.Table, nil)))
	}
	out = append(out, targetFields()...)
	return append(out,
		argument("name", cty.String, "The name of a `remote_state_data_source` in the provider's `encryption` text, whose methods are then used."),
		argument("workspace", cty.String, "The workspace to read, on sources that have workspaces. Defaults to `default`."),
		argument("only", cty.List(cty.String), "The names of the outputs to give. One that neither the state nor the defaults have is an error. Defaults to all."),
		argument("defaults", cty.DynamicPseudoType, "An object of outputs to give where the state has none of that name. It never takes the place of an output that the state has, null and sensitive ones included."),
		secret(argument("sensitive_defaults", cty.DynamicPseudoType, "The same as `defaults`, for `sensitive_outputs`. Like every argument of a data source, it is stored in the state of the configuration that reads.")),
		argument("on_missing", cty.String, "`error`, or `defaults` to go on with the defaults and a warning when there is no state. A refusal, a timeout, a missing repository or branch, or a state that cannot be decrypted is always an error. Defaults to `error`."),
		argument("expected_lineage", cty.String, "The lineage that the state must have. A missing state is then an error whatever `on_missing` says."),
		argument("minimum_serial", cty.Number, "The serial that the state must have reached, against old copies. A missing state is then an error whatever `on_missing` says."),
		argument("max_size", cty.Number, fmt.Sprintf("The size in bytes that the file may have. Defaults to `%d` (512 MiB).", defaultMaxSize)),

		computed("outputs", cty.DynamicPseudoType, "An object of the outputs that are not marked as sensitive, with their exact types."),
		computed("sensitive_output_names", cty.List(cty.String), "The names of the outputs that are marked as sensitive, sorted."),
		computed("exists", cty.Bool, "Whether there is a state."),
		computed("serial", cty.Number, "The serial of the state."),
		computed("lineage", cty.String, "The lineage of the state."),
		computed("terraform_version", cty.String, "The version of the program that wrote the state."),
		computed("encrypted", cty.Bool, "Whether the file was encrypted."),
		computed("decrypted_with", cty.String, "The address of the method that opened the file; null when it was not encrypted."),
		computed("used_fallback", cty.Bool, "Whether a fallback opened the file, which then wants to be written again by its owner."),
		computed("revision", cty.String, "The revision that was read: a commit, an ETag or an object version; null where the source has none."),
	)
}

func computed(name string, typ cty.Type, doc string) field {
	f := argument(name, typ, doc)
	f.Computed = true
	return f
}

// requestDecoder reads the arguments of one data source or ephemeral resource.
type requestDecoder struct {
	decoder
	block cty.Value
}

// request reads the arguments. Where they come from a validation, values may
// be unknown; the request is then not usable.
func (c catalog) request(raw tftypes.Value, env config.LookupEnv) (stateRequest, []problem) {
	block, err := toCty(raw)
	if err != nil {
		return stateRequest{}, []problem{{err: err}}
	}
	d := requestDecoder{decoder: decoder{catalog: c, env: env}, block: block}
	var r stateRequest
	d.source(&r)
	d.encryption(&r)
	d.selection(&r)
	d.pins(&r)
	// The ephemeral resource has no such argument: what it gives is not stored.
	r.keepSensitive = !block.Type().HasAttribute("store_sensitive") || isTrue(block, "store_sensitive", false)
	return r, d.problems
}

var workspacePattern = regexp.MustCompile(`^[A-Za-z0-9_.~-]+$`) // what Terraform allows: it is used in URLs unescaped

func (d *requestDecoder) source(r *stateRequest) {
	kind, block, err := d.catalog.chosenSource(d.block)
	if err != nil {
		d.fail(path.Empty(), "%w", err)
		return
	}
	r.kind = kind
	r.source = source.Request{Workspace: "default", MaxSize: defaultMaxSize}
	if kind.Name != "" && block.IsWhollyKnown() {
		values, err := config.NewEntry(kind.Name, kind.Table, blockValues(block)).Decode(kind.Table, d.env)
		if err != nil {
			d.problems = append(d.problems, problem{path.Root(kind.Name).AtListIndex(0), err})
		}
		r.source.Values = values
	}
	if w := text(d.block, "workspace"); w != "" {
		r.source.Workspace = w
		if w != "default" && kind.Name != "" && !kind.Workspaces {
			d.fail(path.Root("workspace"), "sources of the kind %s have no workspaces", kind.Name)
		} else if !workspacePattern.MatchString(w) || w == "." || w == ".." {
			d.fail(path.Root("workspace"), "this is not the name of a workspace: letters, digits, dots, dashes, underscores and tildes are allowed")
		}
	} else if v := d.block.GetAttr("workspace"); v.IsKnown() && !v.IsNull() {
		d.fail(path.Root("workspace"), "the name of a workspace must not be empty; leave the argument out, or write \"default\"")
	}
	if n, ok := d.number("max_size", 1, math.MaxInt64); ok {
		r.source.MaxSize = n
	}
}

func (d *requestDecoder) encryption(r *stateRequest) {
	r.target = d.target(d.block, path.Empty())
	r.name = text(d.block, "name")
	if r.name != "" && r.target != nil {
		d.fail(path.Root("name"), "name and method exclude one another: a named target has its own methods")
	}
}

func (d *requestDecoder) selection(r *stateRequest) {
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
			d.fail(path.Root("defaults"), "%q stands in sensitive_defaults as well", clip(name))
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

func (d *requestDecoder) pins(r *stateRequest) {
	r.expectedLineage = text(d.block, "expected_lineage")
	if v := d.block.GetAttr("expected_lineage"); v.IsKnown() && !v.IsNull() && v.AsString() == "" {
		// An empty pin is what a broken reference gives, and would pin nothing.
		d.fail(path.Root("expected_lineage"), "a lineage must not be empty; leave the argument out to accept any")
	}
	if n, ok := d.number("minimum_serial", 0, math.MaxInt64); ok {
		r.minimumSerial = &n
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

func (d *requestDecoder) number(name string, min, max int64) (int64, bool) {
	v := d.block.GetAttr(name)
	if v.IsNull() || !v.IsKnown() {
		return 0, false
	}
	n, accuracy := v.AsBigFloat().Int64()
	if accuracy != big.Exact || n < min || n > max {
		d.fail(path.Root(name), "a whole number of at least %d is required", min)
		return 0, false
	}
	return n, true
}

package provider

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/kubestate"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

const defaultMaxSize = 512 << 20 // bytes

// stateRequest is the common part of all requests that read a state: its location, the methods that may open
// it, and the pins that it must match.
type stateRequest struct {
	kind   source.Kind // empty if no source block is known
	source source.Request
	target *unstable.Target // nil if the data source sets no method
	name   string           // the name of a remote_state_data_source in the text; may be empty

	resources bool // whether to keep the resources of the state

	object *kubestate.Object // the Kubernetes object that contains the state; nil if there is no object block

	expectedLineage string // empty if not pinned
	minimumSerial   *int64
}

// identity returns a string that is equal for requests that read the same state in the same way.
func (r stateRequest) identity(target encryption.Target) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\x00%s\x00%d\x00%v\x00", r.kind.Name, r.source.Workspace, r.source.MaxSize, r.resources)
	fmt.Fprintf(&b, "%v\x00%q\x00", target.Enforced(), target.Methods())
	if r.object != nil {
		fmt.Fprintf(&b, "%q\x00", r.object.Identity())
	}
	b.WriteString(r.source.Values.Identity())
	return b.String()
}

// stateFields returns the arguments that a stateRequest is built from.
func (c kinds) stateFields() []field {
	var out []field
	for _, kind := range c.sources {
		out = append(out, atMostOne(many(kind.Table)))
	}
	out = append(out, atMostOne(many(kubestate.Table())))
	out = append(out, targetFields()...)
	return append(out,
		argument("name", cty.String, "The name of a `remote_state_data_source` in the provider's `encryption` text, whose "+
			"methods are then used."),
		argument("workspace", cty.String, "The workspace to read, on sources that have workspaces. Defaults to `default`."),
		argument("expected_lineage", cty.String, "The lineage that the state must have. A missing state is then always an error."),
		argument("minimum_serial", cty.Number, "The lowest serial that the state may have, to refuse old copies. A missing state is then "+
			"always an error."),
		argument("max_size", cty.Number,
			fmt.Sprintf("The maximum size of the file in bytes. Defaults to `%d` (512 MiB).", defaultMaxSize)),
	)
}

func computed(name string, typ cty.Type, doc string) field {
	f := argument(name, typ, doc)
	f.Computed = true
	return f
}

// arguments holds the arguments of a data source or an ephemeral resource while they are being read.
type arguments struct {
	findings
	kinds
	env   attr.LookupEnv
	block cty.Value
}

// state returns the request that the arguments in stateFields describe.
func (a *arguments) state() stateRequest {
	r := stateRequest{source: source.Request{MaxSize: defaultMaxSize}}
	a.source(&r)
	a.object(&r)
	r.source.Workspace = a.workspace(r.kind)
	if n, ok := a.number("max_size", 1, math.MaxInt64, ""); ok {
		r.source.MaxSize = n
	}
	a.encryption(&r)
	a.pins(&r)
	return r
}

// keepsSensitive reports whether the result contains sensitive values. For an ephemeral resource, it always
// does, because the attributes are not stored.
func (a *arguments) keepsSensitive() bool {
	return !a.block.Type().HasAttribute("store_sensitive") || isTrue(a.block, "store_sensitive", false)
}

// source reads the source block. It records an error if there is not exactly one.
func (a *arguments) source(r *stateRequest) {
	var chosen cty.Value
	var names []string
	allKnown := true
	for _, kind := range a.sources {
		names = append(names, kind.Name)
		list, known := blocks(a.block, kind.Name)
		allKnown = allKnown && known
		if len(list) == 0 {
			continue
		}
		if r.kind.Name != "" {
			a.fail(path.Empty(), "the blocks %s and %s are mutually exclusive, because exactly one source is read; remove "+
				"one block, or write a data source for each", r.kind.Name, kind.Name)
			return
		}
		r.kind, chosen = kind, list[0]
	}
	switch {
	case r.kind.Name != "":
		r.source.Values, _ = a.values(r.kind.Table, chosen)
	case allKnown:
		a.fail(path.Empty(), "no source is set; add one of these blocks: %s", strings.Join(names, ", "))
	}
}

// object reads the block that describes a Kubernetes object.
func (a *arguments) object(r *stateRequest) {
	table := kubestate.Table()
	list, _ := blocks(a.block, table.Name)
	if len(list) == 0 {
		return
	}
	values, ok := a.values(table, list[0])
	if !ok {
		return
	}
	object, err := kubestate.New(values)
	if err != nil {
		a.failAt(path.Root(table.Name).AtListIndex(0), err)
		return
	}
	r.object, r.source.Object = object, object
}

// values reads a block. It returns false if part of the block is unknown or invalid.
func (a *arguments) values(table attr.Table, block cty.Value) (attr.Values, bool) {
	if !block.IsWhollyKnown() {
		return nil, false
	}
	values, err := unstable.NewEntry(table.Name, table, blockValues(block)).Decode(table, a.env)
	for _, err := range fault.All(err) {
		if mistake, ok := errors.AsType[*attr.Error](err); ok && mistake.Address == table.Name { // the path already shows the address
			err = reason(err)
			if mistake.Attr != "" {
				err = fmt.Errorf("%s: %w", mistake.Attr, err)
			}
		}
		a.failAt(path.Root(table.Name).AtListIndex(0), err)
	}
	return values, err == nil
}

var workspacePattern = lazyregexp.New(`^[A-Za-z0-9_.~-]+$`) // Terraform's rule; names are used in URLs without escaping

func (a *arguments) workspace(kind source.Kind) string {
	name, ok := given(a.block, "workspace")
	switch {
	case !ok:
		return "default"
	case name == "":
		a.fail(path.Root("workspace"), "the name of the workspace is empty; remove the argument, or write \"default\"")
	case name != "default" && kind.Name != "" && !kind.Workspaces:
		a.fail(path.Root("workspace"), "a block of the kind %s names a single state, so there are no workspaces; remove this argument", kind.Name)
	case !workspacePattern.MatchString(name) || name == "." || name == "..":
		a.fail(path.Root("workspace"), "this is not the name of a workspace; use only letters, digits, dots, dashes, underscores and "+
			"tildes")
	}
	return name
}

func (a *arguments) encryption(r *stateRequest) {
	r.target = a.target(a.registry, a.block, path.Empty(), nil)
	r.name = text(a.block, "name")
	if r.name != "" && r.target != nil {
		a.fail(path.Root("name"), "name and method are both set, but a name already selects methods; remove one of the two arguments")
	}
}

// dangling returns a problem for each method or name that the provider block does not have.
func (r stateRequest) dangling(c *configured) []problem {
	var f findings
	if !c.settings.layered {
		f.checkTarget(c, r.target, path.Empty())
		if err := c.checkName(r.name); err != nil && r.target == nil {
			f.failAt(path.Root("name"), err)
		}
	}
	if !c.blocks {
		f.checkText(c, r)
	}
	return f.problems
}

func (a *arguments) pins(r *stateRequest) {
	lineage, ok := given(a.block, "expected_lineage")
	if ok && lineage == "" {
		// A broken reference results in an empty string, which would pin nothing.
		a.fail(path.Root("expected_lineage"), "the lineage is empty; remove the argument to accept any lineage")
	}
	r.expectedLineage = lineage
	if n, ok := a.number("minimum_serial", 0, math.MaxInt64, ""); ok {
		r.minimumSerial = &n
	}
}

func (a *arguments) number(name string, min, max int64, unit string) (int64, bool) {
	v := a.block.GetAttr(name)
	if v.IsNull() || !v.IsKnown() {
		return 0, false
	}
	n, accuracy := v.AsBigFloat().Int64()
	switch {
	case accuracy == big.Exact && min <= n && n <= max:
		return n, true
	case max == math.MaxInt64:
		a.fail(path.Root(name), "the value must be a whole number of at least %d", min)
	default:
		a.fail(path.Root(name), "the value must be a whole number%s from %d to %d", unit, min, max)
	}
	return 0, false
}

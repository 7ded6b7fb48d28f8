package provider

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/kube"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

const defaultMaxSize = 512 << 20 // bytes

// stateRequest says which state to read, how to open it, and what it must be.
// Everything that reads states has it in common.
type stateRequest struct {
	kind   source.Kind
	source source.Request
	target *config.Target // nil when the source sets no method
	name   string         // of a remote_state_data_source in the text

	resources bool // whether the resources of the state are wanted

	object *kube.Object // what source.Object says; nil if there is none

	expectedLineage string // "" when not pinned
	minimumSerial   *int64
}

// identity is equal for requests that read the same state in the same way.
func (r stateRequest) identity(target encryption.Target) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\x00%s\x00%d\x00%v\x00%v\x00%q\x00", r.kind.Name, r.source.Workspace, r.source.MaxSize, r.resources, target.Enforced(), target.Methods())
	if r.source.Object != nil {
		fmt.Fprintf(&b, "%q\x00", r.source.Object.Identity())
	}
	b.WriteString(r.source.Values.Identity())
	return b.String()
}

// stateFields are the arguments that make a stateRequest.
func (c catalog) stateFields() []field {
	var out []field
	for _, kind := range c.sources {
		out = append(out, atMostOne(many(kind.Table, nil)))
	}
	object := atMostOne(many(kube.Table(), nil))
	out = append(append(out, object), targetFields()...)
	return append(out,
		argument("name", cty.String, "The name of a `remote_state_data_source` in the provider's `encryption` text, whose methods are then used."),
		argument("workspace", cty.String, "The workspace to read, on sources that have workspaces. Defaults to `default`."),
		argument("expected_lineage", cty.String, "The lineage that the state must have. A missing state is then always an error."),
		argument("minimum_serial", cty.Number, "The serial that the state must have reached, against old copies. A missing state is then always an error."),
		argument("max_size", cty.Number, fmt.Sprintf("The size in bytes that the file may have. Defaults to `%d` (512 MiB).", defaultMaxSize)),
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

func (c catalog) requestDecoder(arguments cty.Value, env attr.LookupEnv) *requestDecoder {
	return &requestDecoder{decoder: decoder{catalog: c, env: env}, block: arguments}
}

// state reads the arguments of stateFields.
func (d *requestDecoder) state() stateRequest {
	var r stateRequest
	d.source(&r)
	d.kubernetesObject(&r)
	d.encryption(&r)
	d.pins(&r)
	return r
}

// keepsSensitive says whether sensitive values are given. An ephemeral resource
// has no argument for it: what it gives is not stored.
func (d *requestDecoder) keepsSensitive() bool {
	return !d.block.Type().HasAttribute("store_sensitive") || isTrue(d.block, "store_sensitive", false)
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
		values, err := attr.NewEntry(kind.Name, kind.Table, blockValues(block)).Decode(kind.Table, d.env)
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

func (d *requestDecoder) kubernetesObject(r *stateRequest) {
	table := kube.Table()
	list, _ := blocks(d.block, table.Name)
	if len(list) == 0 || !list[0].IsWhollyKnown() {
		return
	}
	at := path.Root(table.Name).AtListIndex(0)
	values, err := attr.NewEntry(table.Name, table, blockValues(list[0])).Decode(table, d.env)
	if err == nil {
		r.object, err = kube.New(values)
	}
	if err != nil {
		d.problems = append(d.problems, problem{at, err})
		return
	}
	r.source.Object = &values
}

func (d *requestDecoder) encryption(r *stateRequest) {
	r.target = d.target(d.block, path.Empty())
	r.name = text(d.block, "name")
	if r.name != "" && r.target != nil {
		d.fail(path.Root("name"), "name and method exclude one another: a named target has its own methods")
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

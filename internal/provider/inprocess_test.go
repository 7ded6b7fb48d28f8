package provider

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hcldec"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	"github.com/zclconf/go-cty/cty/msgpack"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
)

// evaluation is a root module for which this process plays the CLI: it decodes
// the blocks with the library that the CLIs use, and makes the calls that they
// make. That is for tests of what the provider answers; it takes milliseconds,
// and a CLI takes seconds. There are no resources, no modules and no count.
type evaluation struct {
	t         *testing.T
	kinds     kinds
	providers map[string]evaluated // :: alias → provider block
	readings  []evaluated          // data sources and ephemeral resources
	outputs   []*hclsyntax.Block
	variables map[string]cty.Value

	stage    string // that found the errors: validate or, if that finds none, plan
	errors   []shownError
	warnings []shownError
	values   map[string]map[string]map[string]cty.Value // :: role → type → name → what was read
}

// evaluated is a block, and the provider that it is for.
type evaluated struct {
	written
	server  *Server
	block   *hclsyntax.Block // nil if the module has no provider block
	alias   string
	refused *bool // there are errors in the provider block
}

// evaluate validates a root module and, if there are no errors, reads what it
// reads. Variables have the values of TF_VAR_…, or are not known yet.
func evaluate(t *testing.T, parts ...string) *evaluation {
	t.Helper()
	return builtinKinds().evaluate(t, parts...)
}

func (c kinds) evaluate(t *testing.T, parts ...string) *evaluation {
	t.Helper()
	e := &evaluation{t: t, kinds: c, providers: map[string]evaluated{}, variables: map[string]cty.Value{},
		values: map[string]map[string]map[string]cty.Value{}}
	e.collect(strings.Join(parts, "\n"))
	e.stage = "validate"
	e.walk(func(w written) call { return w.validate })
	if len(e.errors) == 0 {
		e.stage = "plan"
		e.walk(func(w written) call { return w.use })
	}
	return e
}

// derivations are the keys that the tests of this package have derived from
// passphrases.
var derivations lighttest.Derivations

// patient returns kinds with a pbkdf2 that remembers. It derives no keys for
// other uses.
func patient(c kinds) kinds {
	c.registry.KeyProviders = slices.Clone(c.registry.KeyProviders)
	i := slices.IndexFunc(c.registry.KeyProviders, func(b driver.Block[driver.KeyProvider]) bool { return b.Name == "pbkdf2" })
	c.registry.KeyProviders[i] = derivations.Quick(c.registry.KeyProviders[i], nil)
	return c
}

func (e *evaluation) collect(text string) {
	e.t.Helper()
	file, problems := hclsyntax.ParseConfig([]byte(text), "main.tf", hcl.InitialPos)
	if problems.HasErrors() {
		e.t.Fatal(problems)
	}
	var readings []*hclsyntax.Block
	for _, block := range file.Body.(*hclsyntax.Body).Blocks {
		switch block.Type {
		case "provider":
			e.provider(block)
		case "data", "ephemeral":
			readings = append(readings, block)
		case "output":
			e.outputs = append(e.outputs, block)
		case "variable":
			e.variables[block.Labels[0]] = cty.UnknownVal(cty.String)
			if value, ok := os.LookupEnv("TF_VAR_" + block.Labels[0]); ok {
				e.variables[block.Labels[0]] = cty.StringVal(value)
			}
		}
	}
	for _, block := range readings {
		e.reading(block)
	}
}

func (e *evaluation) provider(block *hclsyntax.Block) evaluated {
	server := newServer("test", e.kinds)
	out := evaluated{written: find(e.t, server, "provider"), server: server, block: block, refused: new(bool)}
	if block != nil {
		out.alias = e.metaArgument(block, "alias")
	}
	e.providers[out.alias] = out
	return out
}

func (e *evaluation) reading(block *hclsyntax.Block) {
	alias := strings.TrimPrefix(e.metaArgument(block, "provider"), "statecrypt.")
	provider, ok := e.providers[alias]
	if !ok && alias == "" {
		provider = e.provider(nil)
	}
	e.readings = append(e.readings, evaluated{written: find(e.t, provider.server, block.Type+" "+block.Labels[0]),
		server: provider.server, block: block, refused: provider.refused})
}

// metaArgument is the text of an argument that is for the CLI itself.
func (e *evaluation) metaArgument(block *hclsyntax.Block, name string) string {
	argument, ok := block.Body.Attributes[name]
	if !ok {
		return ""
	}
	if v, problems := argument.Expr.Value(nil); !problems.HasErrors() {
		return v.AsString()
	}
	traversal, problems := hcl.AbsTraversalForExpr(argument.Expr)
	if problems.HasErrors() {
		e.t.Fatal(problems)
	}
	return traversal.RootName() + "." + traversal[1].(hcl.TraverseAttr).Name
}

// walk makes a call for each block. If that of a provider has errors, what it
// would read is left out, as CLIs do.
func (e *evaluation) walk(which func(written) call) {
	for _, alias := range slices.Sorted(maps.Keys(e.providers)) {
		before := len(e.errors)
		e.call(e.providers[alias], which)
		*e.providers[alias].refused = len(e.errors) > before
	}
	for _, r := range e.readings {
		if *r.refused {
			continue
		}
		if got := e.call(r, which); got != nil {
			e.keep(r, got)
		}
	}
}

func (e *evaluation) call(b evaluated, which func(written) call) *tfprotov6.DynamicValue {
	e.t.Helper()
	block, ok := e.decode(b)
	if !ok {
		return nil
	}
	got, diags := which(b.written)(e.t, b.server, b.typeName, wire(e.t, block, b.codec.typ()))
	for _, d := range diags {
		e.report(b, strings.ToLower(d.Severity.String()), d.Summary, d.Detail)
	}
	return got
}

func (e *evaluation) decode(b evaluated) (cty.Value, bool) {
	if b.block == nil {
		return empty(b.codec.fields), true
	}
	_, body, problems := b.block.Body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "alias"}, {Name: "provider"}}})
	value, more := hcldec.Decode(body, specification(b.codec.fields), e.scope())
	for _, p := range append(problems, more...) {
		e.report(b, "error", p.Summary, p.Detail)
	}
	return value, !problems.HasErrors() && !more.HasErrors()
}

// specification is a schema as CLIs make it for the decoder.
func specification(fs []field) hcldec.ObjectSpec {
	out := hcldec.ObjectSpec{}
	for _, f := range fs {
		if f.isBlock() {
			out[f.Name] = &hcldec.BlockListSpec{TypeName: f.Name, Nested: specification(f.Fields)}
		} else {
			out[f.Name] = &hcldec.AttrSpec{Name: f.Name, Type: f.Type, Required: f.required()}
		}
	}
	return out
}

func (e *evaluation) report(b evaluated, severity, summary, detail string) {
	d := shownError{Severity: severity, Summary: summary, Detail: detail}
	if b.block != nil {
		d.Snippet.Context = strings.Join(append([]string{b.block.Type}, quoteAll(b.block.Labels)...), " ")
	}
	if severity == "error" {
		e.errors = append(e.errors, d)
	} else {
		e.warnings = append(e.warnings, d)
	}
}

func quoteAll(labels []string) []string {
	var out []string
	for _, label := range labels {
		out = append(out, quote(label))
	}
	return out
}

func (e *evaluation) keep(r evaluated, got *tfprotov6.DynamicValue) {
	e.t.Helper()
	value, err := msgpack.Unmarshal(got.MsgPack, r.codec.typ())
	if err != nil {
		e.t.Fatal(err)
	}
	kind, name := r.block.Labels[0], r.block.Labels[1]
	if e.values[r.name] == nil {
		e.values[r.name] = map[string]map[string]cty.Value{}
	}
	if e.values[r.name][kind] == nil {
		e.values[r.name][kind] = map[string]cty.Value{}
	}
	e.values[r.name][kind][name] = value
}

// scope is what expressions can refer to.
func (e *evaluation) scope() *hcl.EvalContext {
	out := &hcl.EvalContext{
		Variables: map[string]cty.Value{"var": cty.ObjectVal(e.variables)},
		Functions: map[string]function.Function{"jsonencode": stdlib.JSONEncodeFunc, "tomap": toMap, "nonsensitive": same},
	}
	for role, kinds := range e.values {
		of := map[string]cty.Value{}
		for kind, names := range kinds {
			of[kind] = cty.ObjectVal(names)
		}
		out.Variables[role] = cty.ObjectVal(of)
	}
	return out
}

// Functions of the CLIs. Nothing is marked as sensitive here.
var (
	toMap = unary(cty.Map(cty.DynamicPseudoType))
	same  = unary(cty.DynamicPseudoType)
)

func unary(to cty.Type) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "v", Type: cty.DynamicPseudoType, AllowNull: true}},
		Type: func(args []cty.Value) (cty.Type, error) {
			v, err := convert.Convert(args[0], to)
			return v.Type(), err
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return convert.Convert(args[0], to) },
	})
}

// succeeds returns the evaluation, which must have no errors.
func (e *evaluation) succeeds() *evaluation {
	e.t.Helper()
	if len(e.errors) > 0 {
		e.t.Fatalf("%s: %q", e.stage, e.errors)
	}
	return e
}

// wantOutputs compares the outputs, type and value.
func (e *evaluation) wantOutputs(want map[string]cty.Value) {
	e.t.Helper()
	got := map[string]cty.Value{}
	for _, block := range e.succeeds().outputs {
		v, problems := block.Body.Attributes["value"].Expr.Value(e.scope())
		if problems.HasErrors() {
			e.t.Error(problems)
		}
		got[block.Labels[0]] = v
	}
	for name, v := range want {
		if g, ok := got[name]; !ok || !g.RawEquals(v) {
			e.t.Errorf("output %q:\n got %#v\nwant %#v", name, g, v)
		}
	}
}

// wantError looks for these words in the errors, in this order.
func (e *evaluation) wantError(words ...string) {
	e.t.Helper()
	if text := shownText(e.errors); len(e.errors) == 0 || !says(words...).MatchString(text) {
		e.t.Errorf("got %q, want an error that says %q", text, words)
	}
}

// wantWarning looks for these words in the warnings, in this order.
func (e *evaluation) wantWarning(words ...string) {
	e.t.Helper()
	if text := shownText(e.succeeds().warnings); !says(words...).MatchString(text) {
		e.t.Errorf("got %q, want a warning that says %q", text, words)
	}
}

func shownText(all []shownError) string {
	var out strings.Builder
	for _, d := range all {
		out.WriteString(d.Summary + "\n" + d.Detail + "\n\n")
	}
	return out.String()
}

package provider

import (
	"context"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/msgpack"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

// reading is a data source or an ephemeral resource that reads a state.
type reading struct {
	name, doc string
	fields    []field
	// decode reads the arguments. Where they come from a validation, values may
	// be unknown; the request is then not usable.
	decode func(arguments cty.Value, env attr.LookupEnv) (request, []problem)

	typ cty.Type // of the fields
}

// request is what a user asks for.
type request interface {
	read(ctx context.Context, provider *configured) (*result, error)
}

func newReading(name, doc string, fields []field, decode func(cty.Value, attr.LookupEnv) (request, []problem)) reading {
	return reading{name: name, doc: doc, fields: fields, decode: decode, typ: typeOf(fields)}
}

// As the plugin framework calls a reading:

// validate checks the arguments as far as they are known.
func (r reading) validate(raw tftypes.Value) diag.Diagnostics {
	_, problems := r.decodeRaw(raw, os.LookupEnv)
	return diagnostics(problems)
}

// read returns the arguments with the read-only attributes filled.
func (r reading) read(ctx context.Context, provider *configured, raw tftypes.Value) (tftypes.Value, diag.Diagnostics) {
	req, problems := r.decodeRaw(raw, provider.env)
	if len(problems) > 0 {
		return tftypes.Value{}, diagnostics(problems)
	}
	got, err := req.read(ctx, provider)
	if err != nil {
		return tftypes.Value{}, readDiagnostics(err)
	}
	return got.fill(raw)
}

func (r reading) decodeRaw(raw tftypes.Value, env attr.LookupEnv) (request, []problem) {
	arguments, err := toCty(raw)
	if err != nil {
		return nil, []problem{{err: err}}
	}
	return r.decode(arguments, env)
}

// As the server calls a reading, past the framework. For each call the framework
// walks the whole schema many times, with the blocks of every source there is,
// where one of them is set; and it copies the result several times, which may be
// large. What follows does the same for arguments that nothing is wrong with. All
// others are left to the framework: it says what is wrong where.

// accepts says whether nothing is wrong with the arguments as far as they are
// known.
func (r reading) accepts(sent *tfprotov6.DynamicValue) bool {
	arguments, ok := r.receive(sent)
	if !ok {
		return false
	}
	_, problems := r.decode(arguments, os.LookupEnv)
	return len(problems) == 0
}

// answer does what read does, unless the framework has to.
func (r reading) answer(ctx context.Context, provider *configured, sent *tfprotov6.DynamicValue) (*tfprotov6.DynamicValue, []*tfprotov6.Diagnostic, bool) {
	arguments, ok := r.receive(sent)
	if !ok || provider == nil {
		return nil, nil, false
	}
	req, problems := r.decode(arguments, provider.env)
	if len(problems) > 0 {
		return nil, nil, false
	}
	got, err := req.read(ctx, provider)
	if err != nil {
		return sent, sendDiagnostics(readDiagnostics(err)), true
	}
	value, diags := r.send(arguments, got)
	return value, sendDiagnostics(diags), true
}

// receive returns the arguments, if they are as the schema says.
func (r reading) receive(sent *tfprotov6.DynamicValue) (cty.Value, bool) {
	if sent == nil || sent.MsgPack == nil {
		return cty.NilVal, false
	}
	arguments, err := msgpack.Unmarshal(sent.MsgPack, r.typ)
	return arguments, err == nil && conforms(arguments, r.fields)
}

// conforms makes the checks that the framework makes by a schema.
func conforms(object cty.Value, fields []field) bool {
	if object.IsNull() || !object.IsKnown() {
		return false
	}
	for _, f := range fields {
		v := object.GetAttr(f.Name)
		switch {
		case f.isBlock():
			if v.IsKnown() && !conformAll(v, f) {
				return false
			}
		case f.Computed && !v.IsNull(), f.required() && v.IsNull():
			return false
		}
	}
	return true
}

func conformAll(blocks cty.Value, f field) bool {
	if blocks.IsNull() || !f.Many && blocks.LengthInt() > 1 {
		return false
	}
	for it := blocks.ElementIterator(); it.Next(); {
		if _, block := it.Element(); !conforms(block, f.Fields) {
			return false
		}
	}
	return true
}

// send returns the arguments with the read-only attributes filled.
func (r reading) send(arguments cty.Value, got *result) (*tfprotov6.DynamicValue, diag.Diagnostics) {
	diags := warningDiagnostics(got.warnings)
	values := arguments.AsValueMap()
	for name, v := range got.attributes {
		values[name] = v
	}
	data, err := msgpack.Marshal(cty.ObjectVal(values), r.typ)
	if err != nil {
		diags.AddError("Cannot return the result", err.Error())
	}
	return &tfprotov6.DynamicValue{MsgPack: data}, diags
}

// sendDiagnostics is for diagnostics without a path.
func sendDiagnostics(diags diag.Diagnostics) []*tfprotov6.Diagnostic {
	var out []*tfprotov6.Diagnostic
	for _, d := range diags {
		severity := tfprotov6.DiagnosticSeverityWarning
		if d.Severity() == diag.SeverityError {
			severity = tfprotov6.DiagnosticSeverityError
		}
		out = append(out, &tfprotov6.Diagnostic{Severity: severity, Summary: d.Summary(), Detail: d.Detail()})
	}
	return out
}

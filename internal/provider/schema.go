package provider

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	data "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	ephemeral "github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	provider "github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
)

// field is an argument, a block or a read-only attribute of a schema. The
// framework has three schema packages of the same shape and no way to share
// between them, so everything is declared once as fields and put into each
// shape below.
type field struct {
	config.Attr
	Computed bool    // a read-only attribute
	Many     bool    // a block that may stand any number of times
	Fields   []field // the inside of a block, in place of Attr.Attrs
}

func fields(attrs []config.Attr) []field {
	out := make([]field, len(attrs))
	for i, a := range attrs {
		out[i] = field{Attr: a}
		if a.Attrs != nil {
			out[i].Fields = fields(a.Attrs)
		}
	}
	return out
}

func (f field) isBlock() bool { return f.Fields != nil }

// required says whether Terraform itself may insist on the argument: not when
// the environment can fill it.
func (f field) required() bool { return f.Required && len(f.Env) == 0 }

func (f field) optional() bool { return !f.Computed && !f.required() }

// blockValidators limit how often a block may stand. List blocks everywhere: a
// single nested block with a required argument fails even when it is absent.
func (f field) blockValidators() []validator.List {
	if f.Many {
		return nil
	}
	return []validator.List{listvalidator.SizeAtMost(1)}
}

func elementType(t cty.Type) attr.Type {
	switch t.ElementType() {
	case cty.Number:
		return types.NumberType
	case cty.Bool:
		return types.BoolType
	}
	return types.StringType
}

func providerFields(fs []field) (map[string]provider.Attribute, map[string]provider.Block) {
	attrs, blocks := map[string]provider.Attribute{}, map[string]provider.Block{}
	for _, f := range fs {
		if f.isBlock() {
			inner, nested := providerFields(f.Fields)
			blocks[f.Name] = provider.ListNestedBlock{
				MarkdownDescription: f.Doc, Validators: f.blockValidators(),
				NestedObject: provider.NestedBlockObject{Attributes: inner, Blocks: nested},
			}
			continue
		}
		attrs[f.Name] = providerAttribute(f)
	}
	return attrs, blocks
}

func providerAttribute(f field) provider.Attribute {
	switch {
	case f.Type == cty.String:
		return provider.StringAttribute{MarkdownDescription: f.Doc, Required: f.required(), Optional: f.optional(), Sensitive: f.Sensitive}
	case f.Type == cty.Number:
		return provider.NumberAttribute{MarkdownDescription: f.Doc, Required: f.required(), Optional: f.optional(), Sensitive: f.Sensitive}
	case f.Type == cty.Bool:
		return provider.BoolAttribute{MarkdownDescription: f.Doc, Required: f.required(), Optional: f.optional(), Sensitive: f.Sensitive}
	case f.Type.IsListType():
		return provider.ListAttribute{MarkdownDescription: f.Doc, Required: f.required(), Optional: f.optional(), Sensitive: f.Sensitive, ElementType: elementType(f.Type)}
	case f.Type.IsMapType():
		return provider.MapAttribute{MarkdownDescription: f.Doc, Required: f.required(), Optional: f.optional(), Sensitive: f.Sensitive, ElementType: elementType(f.Type)}
	}
	return provider.DynamicAttribute{MarkdownDescription: f.Doc, Required: f.required(), Optional: f.optional(), Sensitive: f.Sensitive}
}

func dataFields(fs []field) (map[string]data.Attribute, map[string]data.Block) {
	attrs, blocks := map[string]data.Attribute{}, map[string]data.Block{}
	for _, f := range fs {
		if f.isBlock() {
			inner, nested := dataFields(f.Fields)
			blocks[f.Name] = data.ListNestedBlock{
				MarkdownDescription: f.Doc, Validators: f.blockValidators(),
				NestedObject: data.NestedBlockObject{Attributes: inner, Blocks: nested},
			}
			continue
		}
		attrs[f.Name] = dataAttribute(f)
	}
	return attrs, blocks
}

func dataAttribute(f field) data.Attribute {
	switch {
	case f.Type == cty.String:
		return data.StringAttribute{MarkdownDescription: f.Doc, Required: f.required(), Optional: f.optional(), Computed: f.Computed, Sensitive: f.Sensitive}
	case f.Type == cty.Number:
		return data.NumberAttribute{MarkdownDescription: f.Doc, Required: f.required(), Optional: f.optional(), Computed: f.Computed, Sensitive: f.Sensitive}
	case f.Type == cty.Bool:
		return data.BoolAttribute{MarkdownDescription: f.Doc, Required: f.required(), Optional: f.optional(), Computed: f.Computed, Sensitive: f.Sensitive}
	case f.Type.IsListType():
		return data.ListAttribute{MarkdownDescription: f.Doc, Required: f.required(), Optional: f.optional(), Computed: f.Computed, Sensitive: f.Sensitive, ElementType: elementType(f.Type)}
	case f.Type.IsMapType():
		return data.MapAttribute{MarkdownDescription: f.Doc, Required: f.required(), Optional: f.optional(), Computed: f.Computed, Sensitive: f.Sensitive, ElementType: elementType(f.Type)}
	}
	return data.DynamicAttribute{MarkdownDescription: f.Doc, Required: f.required(), Optional: f.optional(), Computed: f.Computed, Sensitive: f.Sensitive}
}

func ephemeralFields(fs []field) (map[string]ephemeral.Attribute, map[string]ephemeral.Block) {
	attrs, blocks := map[string]ephemeral.Attribute{}, map[string]ephemeral.Block{}
	for _, f := range fs {
		if f.isBlock() {
			inner, nested := ephemeralFields(f.Fields)
			blocks[f.Name] = ephemeral.ListNestedBlock{
				MarkdownDescription: f.Doc, Validators: f.blockValidators(),
				NestedObject: ephemeral.NestedBlockObject{Attributes: inner, Blocks: nested},
			}
			continue
		}
		attrs[f.Name] = ephemeralAttribute(f)
	}
	return attrs, blocks
}

func ephemeralAttribute(f field) ephemeral.Attribute {
	switch {
	case f.Type == cty.String:
		return ephemeral.StringAttribute{MarkdownDescription: f.Doc, Required: f.required(), Optional: f.optional(), Computed: f.Computed, Sensitive: f.Sensitive}
	case f.Type == cty.Number:
		return ephemeral.NumberAttribute{MarkdownDescription: f.Doc, Required: f.required(), Optional: f.optional(), Computed: f.Computed, Sensitive: f.Sensitive}
	case f.Type == cty.Bool:
		return ephemeral.BoolAttribute{MarkdownDescription: f.Doc, Required: f.required(), Optional: f.optional(), Computed: f.Computed, Sensitive: f.Sensitive}
	case f.Type.IsListType():
		return ephemeral.ListAttribute{MarkdownDescription: f.Doc, Required: f.required(), Optional: f.optional(), Computed: f.Computed, Sensitive: f.Sensitive, ElementType: elementType(f.Type)}
	case f.Type.IsMapType():
		return ephemeral.MapAttribute{MarkdownDescription: f.Doc, Required: f.required(), Optional: f.optional(), Computed: f.Computed, Sensitive: f.Sensitive, ElementType: elementType(f.Type)}
	}
	return ephemeral.DynamicAttribute{MarkdownDescription: f.Doc, Required: f.required(), Optional: f.optional(), Computed: f.Computed, Sensitive: f.Sensitive}
}

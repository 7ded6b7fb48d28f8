package provider

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	fwattr "github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

// field is an argument, a block or a read-only attribute of a schema.
type field struct {
	attr.Attr
	Computed bool    // a read-only attribute
	Many     bool    // a block that may stand any number of times
	Fields   []field // the inside of a block, in place of Attr.Attrs
}

func fields(attrs []attr.Attr) []field {
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

// typeOf is the type of the object that Terraform makes of the fields.
func typeOf(fs []field) cty.Type {
	attrs := map[string]cty.Type{}
	for _, f := range fs {
		if attrs[f.Name] = f.Type; f.isBlock() {
			attrs[f.Name] = cty.List(typeOf(f.Fields))
		}
	}
	return cty.Object(attrs)
}

// blockValidators limit how often a block may stand. List blocks everywhere: a
// single nested block with a required argument fails even when it is absent.
func (f field) blockValidators() []validator.List {
	if f.Many {
		return nil
	}
	return []validator.List{listvalidator.SizeAtMost(1)}
}

func elementType(t cty.Type) fwattr.Type { return primitiveType(t.ElementType()) }

func attributeTypes(t cty.Type) map[string]fwattr.Type {
	out := map[string]fwattr.Type{}
	for name, at := range t.AttributeTypes() {
		out[name] = primitiveType(at)
	}
	return out
}

func primitiveType(t cty.Type) fwattr.Type {
	switch t {
	case cty.Number:
		return types.NumberType
	case cty.Bool:
		return types.BoolType
	}
	return types.StringType
}

// schemaOf makes attributes and blocks. The schema packages of the framework
// each declare interfaces of their own, with the same methods, so what data
// sources use serves the provider and ephemeral resources as well: A and B are
// the interfaces of the package at hand.
func schemaOf[A, B any](fs []field) (map[string]A, map[string]B) {
	attrs, blocks := map[string]A{}, map[string]B{}
	for _, f := range fs {
		if f.isBlock() {
			blocks[f.Name] = any(blockOf(f)).(B) //nolint:forcetypeassert // B is an interface with the same methods
		} else {
			attrs[f.Name] = any(attributeOf(f)).(A) //nolint:forcetypeassert // A is an interface with the same methods
		}
	}
	return attrs, blocks
}

func blockOf(f field) schema.Block {
	attrs, blocks := schemaOf[schema.Attribute, schema.Block](f.Fields)
	return schema.ListNestedBlock{
		MarkdownDescription: f.Doc, Validators: f.blockValidators(),
		NestedObject: schema.NestedBlockObject{Attributes: attrs, Blocks: blocks},
	}
}

func attributeOf(f field) schema.Attribute {
	switch {
	case f.Type == cty.String:
		return schema.StringAttribute{MarkdownDescription: f.Doc, Required: f.required(), Optional: f.optional(), Computed: f.Computed, Sensitive: f.Sensitive}
	case f.Type == cty.Number:
		return schema.NumberAttribute{MarkdownDescription: f.Doc, Required: f.required(), Optional: f.optional(), Computed: f.Computed, Sensitive: f.Sensitive}
	case f.Type == cty.Bool:
		return schema.BoolAttribute{MarkdownDescription: f.Doc, Required: f.required(), Optional: f.optional(), Computed: f.Computed, Sensitive: f.Sensitive}
	case f.Type.IsListType():
		return schema.ListAttribute{MarkdownDescription: f.Doc, Required: f.required(), Optional: f.optional(), Computed: f.Computed, Sensitive: f.Sensitive, ElementType: elementType(f.Type)}
	case f.Type.IsObjectType():
		return schema.ObjectAttribute{MarkdownDescription: f.Doc, Required: f.required(), Optional: f.optional(), Computed: f.Computed, Sensitive: f.Sensitive, AttributeTypes: attributeTypes(f.Type)}
	case f.Type.IsMapType():
		return schema.MapAttribute{MarkdownDescription: f.Doc, Required: f.required(), Optional: f.optional(), Computed: f.Computed, Sensitive: f.Sensitive, ElementType: elementType(f.Type)}
	}
	return schema.DynamicAttribute{MarkdownDescription: f.Doc, Required: f.required(), Optional: f.optional(), Computed: f.Computed, Sensitive: f.Sensitive}
}

package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	fwattr "github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

// field is an argument, a block or a read-only attribute in a schema.
type field struct {
	attr.Attr
	Computed bool    // whether this is a read-only attribute
	Many     bool    // whether this is a repeatable block
	Fields   []field // the fields inside a block, instead of Attr.Attrs
}

// fields returns the first fields, followed by the fields of the attributes.
func fields(attrs []attr.Attr, first ...field) []field {
	out := make([]field, len(first), len(first)+len(attrs))
	copy(out, first)
	for _, a := range attrs {
		f := field{Attr: a}
		if a.Attrs != nil {
			f.Fields = fields(a.Attrs)
		}
		out = append(out, f)
	}
	return out
}

func (f field) isBlock() bool { return f.Fields != nil }

// required reports whether Terraform itself may require the argument. It may not if an environment variable
// or another argument can replace it.
func (f field) required() bool { return f.Required && len(f.Env) == 0 && f.Excludes == nil }

func (f field) optional() bool { return !f.Computed && !f.required() }

func (f field) doc() string { return f.Doc + variables(f.Attr) }

// typeOf returns the type of the object that Terraform builds from the fields.
func typeOf(fs []field) cty.Type {
	attrs := map[string]cty.Type{}
	for _, f := range fs {
		if attrs[f.Name] = f.Type; f.isBlock() {
			attrs[f.Name] = cty.List(typeOf(f.Fields))
		}
	}
	return cty.Object(attrs)
}

// protocolSchema returns a schema in the form in which the CLI receives it. The framework could make it from the result
// of [schemaOf], but validates and copies that several times, which takes a fifth of the provider's start.
func protocolSchema(doc string, fs []field) *tfprotov6.Schema {
	b := protocolBlock(fs)
	b.Description, b.DescriptionKind = doc, tfprotov6.StringKindMarkdown
	return &tfprotov6.Schema{Block: b}
}

func protocolBlock(fs []field) *tfprotov6.SchemaBlock {
	out := &tfprotov6.SchemaBlock{}
	for _, f := range fs {
		if f.isBlock() {
			nested := protocolBlock(f.Fields)
			nested.Description, nested.DescriptionKind = f.Doc, tfprotov6.StringKindMarkdown
			out.BlockTypes = append(out.BlockTypes, &tfprotov6.SchemaNestedBlock{
				TypeName: f.Name, Nesting: tfprotov6.SchemaNestedBlockNestingModeList, Block: nested,
			})
			continue
		}
		out.Attributes = append(out.Attributes, &tfprotov6.SchemaAttribute{
			Name: f.Name, Type: protocolType(f.Type), Required: f.required(), Optional: f.optional(), Computed: f.Computed,
			Sensitive: f.Secrecy.IsHidden(), Description: f.doc(), DescriptionKind: tfprotov6.StringKindMarkdown,
		})
	}
	slices.SortFunc(out.Attributes, func(a, b *tfprotov6.SchemaAttribute) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(out.BlockTypes, func(a, b *tfprotov6.SchemaNestedBlock) int { return strings.Compare(a.TypeName, b.TypeName) })
	return out
}

func protocolType(t cty.Type) tftypes.Type {
	switch {
	case t == cty.String:
		return tftypes.String
	case t == cty.Number:
		return tftypes.Number
	case t == cty.Bool:
		return tftypes.Bool
	case t.IsListType():
		return tftypes.List{ElementType: protocolType(t.ElementType())}
	case t.IsMapType():
		return tftypes.Map{ElementType: protocolType(t.ElementType())}
	case t.IsObjectType():
		members := map[string]tftypes.Type{}
		for name, member := range t.AttributeTypes() {
			members[name] = protocolType(member)
		}
		return tftypes.Object{AttributeTypes: members}
	}
	return tftypes.DynamicPseudoType
}

// schemaOf returns the attributes and blocks of a schema. A and B are the attribute and block interfaces of
// the schema package in use. Each schema package of the framework declares its own, but their methods are the
// same, so the types made here fit the provider, data sources and ephemeral resources.
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

// blockOf returns a list block, even if at most one block is allowed: a single nested block with a required
// argument would fail even if it is absent.
func blockOf(f field) schema.Block {
	attrs, blocks := schemaOf[schema.Attribute, schema.Block](f.Fields)
	out := schema.ListNestedBlock{
		MarkdownDescription: f.Doc,
		NestedObject:        schema.NestedBlockObject{Attributes: attrs, Blocks: blocks},
	}
	if !f.Many {
		out.Validators = []validator.List{atMostOneBlock{f.Name}}
	}
	return out
}

// atMostOneBlock is a validator that rejects a second block.
type atMostOneBlock struct{ name string }

func (v atMostOneBlock) Description(context.Context) string { return "At most one block." }

func (v atMostOneBlock) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v atMostOneBlock) ValidateList(_ context.Context, req validator.ListRequest, resp *validator.ListResponse) {
	if n := len(req.ConfigValue.Elements()); n > 1 {
		resp.Diagnostics.AddAttributeError(req.Path, invalidConfiguration,
			fmt.Sprintf("There are %d %s blocks, but only one is allowed here; remove the others.", n, v.name))
	}
}

func attributeOf(f field) schema.Attribute {
	doc, required, optional, computed, secret := f.doc(), f.required(), f.optional(), f.Computed, f.Secrecy.IsHidden()
	switch {
	case f.Type == cty.String:
		return schema.StringAttribute{
			MarkdownDescription: doc, Required: required, Optional: optional, Computed: computed, Sensitive: secret}
	case f.Type == cty.Number:
		return schema.NumberAttribute{
			MarkdownDescription: doc, Required: required, Optional: optional, Computed: computed, Sensitive: secret}
	case f.Type == cty.Bool:
		return schema.BoolAttribute{
			MarkdownDescription: doc, Required: required, Optional: optional, Computed: computed, Sensitive: secret}
	case f.Type.IsListType():
		return schema.ListAttribute{ElementType: frameworkType(f.Type.ElementType()),
			MarkdownDescription: doc, Required: required, Optional: optional, Computed: computed, Sensitive: secret}
	case f.Type.IsMapType():
		return schema.MapAttribute{ElementType: frameworkType(f.Type.ElementType()),
			MarkdownDescription: doc, Required: required, Optional: optional, Computed: computed, Sensitive: secret}
	case f.Type.IsObjectType():
		return schema.ObjectAttribute{AttributeTypes: frameworkTypes(f.Type.AttributeTypes()),
			MarkdownDescription: doc, Required: required, Optional: optional, Computed: computed, Sensitive: secret}
	}
	return schema.DynamicAttribute{
		MarkdownDescription: doc, Required: required, Optional: optional, Computed: computed, Sensitive: secret}
}

// variables returns a sentence that lists the argument's environment variables, in order of precedence. It
// omits variables that the argument's documentation already names, and returns an empty string if none
// remain.
func variables(a attr.Attr) string {
	named := func(name string) bool { return strings.Contains(a.Doc, "`"+name+"`") }
	names := slices.DeleteFunc(slices.Clone(a.Env), named)
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(" Variable: `%s`.", strings.Join(names, "`, else `"))
}

func frameworkTypes(members map[string]cty.Type) map[string]fwattr.Type {
	out := map[string]fwattr.Type{}
	for name, t := range members {
		out[name] = frameworkType(t)
	}
	return out
}

// frameworkType converts a number, bool or string type to the framework's type.
func frameworkType(t cty.Type) fwattr.Type {
	switch t {
	case cty.Number:
		return types.NumberType
	case cty.Bool:
		return types.BoolType
	}
	return types.StringType
}

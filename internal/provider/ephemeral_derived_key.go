package provider

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
)

// derivedKeyEphemeral is ephemeral "statecrypt_derived_key".
type derivedKeyEphemeral struct {
	provider *configured
}

var _ ephemeral.EphemeralResourceWithConfigure = (*derivedKeyEphemeral)(nil)

func (e *derivedKeyEphemeral) Metadata(_ context.Context, _ ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = "statecrypt_derived_key"
}

func (e *derivedKeyEphemeral) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	attrs, blocks := schemaOf[schema.Attribute, schema.Block]([]field{
		required(argument("key_provider", cty.String, "The address of the key provider, such as `key_provider.pbkdf2.main`. Its entry must say `exportable = true`.")),
		required(argument("info", cty.String, "What the key is for. Another text gives another, independent key.")),
		argument("length", cty.Number, "The length of the key in bytes, 16 to 64. Defaults to `32`."),
		argument("salt", cty.String, "At least 16 random bytes in standard base64, which need not be secret: keep them with the configuration, and the same key comes back. Required for `pbkdf2`."),
		argument("wrapped_key", cty.String, "Metadata as it stands in an encrypted file (the JSON document under the key provider's name in `meta`, decoded from base64), in place of `salt`. Its parameters must be as strong as those of new keys."),
		secret(computed("key_base64", cty.String, "The key, in standard base64.")),
		secret(computed("key_hex", cty.String, "The key, in hexadecimal.")),
	})
	resp.Schema = schema.Schema{
		MarkdownDescription: "Derives a key for another use from a key provider, with HKDF-SHA-256. The same arguments give the same key each time. The key that opens states is never handed out, and nothing is stored.",
		Attributes:          attrs,
		Blocks:              blocks,
	}
}

func (e *derivedKeyEphemeral) Configure(_ context.Context, req ephemeral.ConfigureRequest, _ *ephemeral.ConfigureResponse) {
	e.provider, _ = req.ProviderData.(*configured)
}

func (e *derivedKeyEphemeral) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	arguments, err := toCty(req.Config.Raw)
	if err != nil {
		resp.Diagnostics.AddError("Invalid configuration", err.Error())
		return
	}
	address, derivation, diags := derivationFrom(arguments)
	if resp.Diagnostics.Append(diags...); diags.HasError() {
		return
	}
	if err := e.provider.unknown; err != nil {
		resp.Diagnostics.Append(deriveDiagnostics(err)...)
		return
	}
	key, err := e.provider.encryption.DeriveKey(ctx, address, derivation)
	if err != nil {
		resp.Diagnostics.Append(deriveDiagnostics(err)...)
		return
	}
	resp.Result.Raw, err = withResults(req.Config.Raw, map[string]cty.Value{
		"key_base64": cty.StringVal(base64.StdEncoding.EncodeToString(key)),
		"key_hex":    cty.StringVal(hex.EncodeToString(key)),
	})
	if err != nil {
		resp.Diagnostics.AddError("Cannot return the key", err.Error())
	}
}

func derivationFrom(arguments cty.Value) (string, encryption.Derivation, diag.Diagnostics) {
	d := requestDecoder{block: arguments}
	address := text(arguments, "key_provider")
	if !attr.IsKeyProviderAddress(address) {
		d.fail(path.Root("key_provider"), "the address of a key provider is required, such as key_provider.pbkdf2.main")
	}
	out := encryption.Derivation{Info: text(arguments, "info"), Length: 32}
	if n, ok := d.number("length", 16, 64); ok {
		out.Length = int(n)
	}
	if !arguments.GetAttr("salt").IsNull() {
		salt, err := base64.StdEncoding.DecodeString(text(arguments, "salt"))
		if err != nil {
			d.fail(path.Root("salt"), "this is not standard base64")
		}
		out.Salt = salt
	}
	if !arguments.GetAttr("wrapped_key").IsNull() {
		out.Wrapped = json.RawMessage(text(arguments, "wrapped_key"))
		if !json.Valid(out.Wrapped) {
			d.fail(path.Root("wrapped_key"), "this is not a JSON document")
		}
	}
	return address, out, diagnostics(d.problems)
}

package provider

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// derivedKey returns the ephemeral resource statecrypt_derived_key.
func derivedKey() reading {
	return reading{
		as:   ephemeralResource,
		name: "statecrypt_derived_key",
		doc: "Derives a key for another use from a key provider, with HKDF-SHA-256. The same arguments always give the same key. The key that " +
			"opens states is never returned, and nothing is stored.",
		codec: newCodec([]field{
			required(argument("key_provider", cty.String, "The address of the key provider, such as "+
				"`key_provider.pbkdf2.main`. Its entry must set `exportable = true`.")),
			required(argument("info", cty.String, "The purpose of the key. Another text gives another, independent key.")),
			argument("length", cty.Number, "The length of the key in bytes, 16 to 64. Defaults to `32`."),
			argument("salt", cty.String, "At least 16 random bytes in standard base64. They need not be secret: keep them "+
				"with the configuration to get the same key again. Required for `pbkdf2`."),
			argument("wrapped_key", cty.String, "Metadata as stored in an encrypted file (the JSON document under the key "+
				"provider's name in `meta`, decoded from base64), in place of `salt`. Its parameters must be as strong as "+
				"those of new keys."),
			secret(computed("key_base64", cty.String, "The key, in standard base64.")),
			secret(computed("key_hex", cty.String, "The key, in hexadecimal.")),
		}),
		request: derivedKeyFrom,
	}
}

// derivedKeyRequest is a request for statecrypt_derived_key.
type derivedKeyRequest struct {
	keyProvider string
	derivation  encryption.Derivation
}

func derivedKeyFrom(_ kinds, block cty.Value, _ attr.LookupEnv) (request, []problem) {
	a := arguments{block: block}
	out := derivedKeyRequest{derivation: encryption.Derivation{Info: text(block, "info"), Length: 32}}
	if s, ok := given(block, "key_provider"); ok {
		if out.keyProvider = s; !syntax.IsKeyProviderAddress(s) {
			a.fail(path.Root("key_provider"), "this is not the address of a key provider; write an address like key_provider.pbkdf2.main")
		}
	}
	if n, ok := a.number("length", 16, 64, " of bytes"); ok {
		out.derivation.Length = int(n)
	}
	if s, ok := given(block, "salt"); ok {
		salt, err := base64.StdEncoding.DecodeString(s)
		if _, notHex := hex.DecodeString(s); notHex == nil && len(s) >= 2*16 {
			a.fail(path.Root("salt"), "this is hexadecimal, not base64; create a salt with openssl rand -base64 32")
		} else if err != nil {
			a.fail(path.Root("salt"), "this is not standard base64; create a salt with openssl rand -base64 32")
		}
		out.derivation.Salt = salt
	}
	if s, ok := given(block, "wrapped_key"); ok {
		decoded, _ := base64.StdEncoding.DecodeString(s)
		switch out.derivation.Wrapped = json.RawMessage(s); {
		case json.Valid(out.derivation.Wrapped):
		case json.Valid(decoded):
			a.fail(path.Root("wrapped_key"), "this is a JSON document in base64; decode it with base64decode(…)")
		default:
			a.fail(path.Root("wrapped_key"), "this is not a JSON document; copy the metadata from the file")
		}
	}
	return out, a.problems
}

func (r derivedKeyRequest) read(ctx context.Context, provider *configured) (*result, error) {
	if provider.unknown != nil {
		return nil, &stepError{step: stepDerive, err: provider.unknown}
	}
	key, err := provider.encryption.DeriveKey(ctx, r.keyProvider, r.derivation)
	if err != nil {
		return nil, &stepError{step: stepDerive, err: err}
	}
	return &result{attributes: map[string]cty.Value{
		"key_base64": cty.StringVal(base64.StdEncoding.EncodeToString(key)),
		"key_hex":    cty.StringVal(hex.EncodeToString(key)),
	}}, nil
}

package provider

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

var lockType = cty.Object(map[string]cty.Type{"id": cty.String, "who": cty.String, "operation": cty.String, "created": cty.String})

// headerFields returns the read-only attributes that describe the state as a whole.
func headerFields() []field {
	return []field{
		computed("serial", cty.Number, "The serial of the state."),
		computed("lineage", cty.String, "The lineage of the state."),
		computed("terraform_version", cty.String, "The version of the program that wrote the state."),
		computed("encrypted", cty.Bool, "Whether the file was encrypted."),
		computed("decrypted_with", cty.String, "The address of the method that opened the file; null if it was not encrypted."),
		computed("used_fallback", cty.Bool, "Whether a fallback opened the file. Its owner should then write the state again."),
		computed("revision", cty.String, "The revision that was read: a commit, an ETag or an object version; null if the "+
			"source has none."),
		computed("lock", lockType, "Who had the state locked when it was read (`git`, `azurerm` and `remote` see locks): an object with `id`, "+
			"`who`, `operation` and `created`, each possibly null. Null if there was no lock."),
	}
}

// maxRevision is the maximum size of a revision, in bytes. S3 version IDs have up to 1,024 bytes before
// escaping.
const maxRevision = 4096

// header returns the values of [headerFields]. For a missing state, it returns only revision and lock.
func (s *openedState) header() map[string]cty.Value {
	out := map[string]cty.Value{"revision": orNull(outside.Value(s.revision, maxRevision)), "lock": lockValue(s.lock)}
	if s.missing != nil {
		return out
	}
	out["serial"] = cty.NumberIntVal(s.Serial)
	out["lineage"] = orNull(s.Lineage)
	out["terraform_version"] = orNull(s.TerraformVersion)
	out["encrypted"] = cty.BoolVal(s.opened.Encrypted)
	out["decrypted_with"] = cty.NullVal(cty.String)
	if s.opened.Encrypted {
		out["decrypted_with"] = orNull(s.opened.Method)
	}
	out["used_fallback"] = cty.BoolVal(s.opened.UsedFallback)
	return out
}

func lockValue(l *source.Lock) cty.Value {
	if l == nil {
		return cty.NullVal(lockType)
	}
	return cty.ObjectVal(map[string]cty.Value{
		"id": orNull(l.ID), "who": orNull(l.Who), "operation": orNull(l.Operation), "created": orNull(l.Created),
	})
}

func orNull(s string) cty.Value {
	if s == "" {
		return cty.NullVal(cty.String)
	}
	return cty.StringVal(s)
}

package encryption_test

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
)

// TestNoValue: a value of Go that is none is an error, whatever uses the variable.
func TestNoValue(t *testing.T) {
	t.Parallel()
	inside := cty.ObjectVal(map[string]cty.Value{"a": cty.TupleVal([]cty.Value{cty.StringVal("x"), cty.NilVal})})
	for _, expr := range []string{
		"var.pp", "trimspace(var.pp)", `join(",", var.pp)`, `"${var.pp}"`, `"a${var.pp}b"`, "var.pp.a", "var.pp[0]", `try(var.pp, "x")`, "jsonencode(var)",
		`var["pp"]`, "upper(var.pp)", `var.pp == "x" ? "a" : "b"`, "[for x in var.pp : x][0]", `coalesce(var.pp, "a passphrase that is long")`,
		"nonsensitive(var.pp)", `"a passphrase that is long"`,
	} {
		for _, v := range []cty.Value{cty.NilVal, inside} {
			_, err := encryption.Load(lighttest.Registry(), encryption.Code(`
				key_provider "pbkdf2" "k" { passphrase = `+expr+` }
				method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }
				state { method = method.aes_gcm.m }`, "settings", encryption.Variables(map[string]cty.Value{"pp": v})))
			if err == nil || !strings.Contains(err.Error(), "var.pp") {
				t.Errorf("%s: got %v", expr, err)
			}
		}
	}
}

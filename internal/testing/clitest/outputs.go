package clitest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/tfstate"
)

// Secret is part of every state. A file that contains it is not encrypted.
const Secret = "an output's value, in plain text"

const outputs = `
output "greeting" { value = "hello, wörld, from ${terraform.workspace}" }
output "secret" {
  value     = { password = "` + Secret + `", ports = [1, 2.5] }
  sensitive = true
}
output "large" { value = file("large") }
`

func wanted(workspace, large string) map[string]cty.Value {
	return map[string]cty.Value{
		"greeting": cty.StringVal("hello, wörld, from " + workspace),
		"secret": cty.ObjectVal(map[string]cty.Value{
			"password": cty.StringVal(Secret), "ports": cty.TupleVal([]cty.Value{cty.NumberIntVal(1), cty.NumberFloatVal(2.5)}),
		}),
		"large": cty.StringVal(large),
	}
}

const encryptionText = `
key_provider "pbkdf2" "k" {
  passphrase = "a passphrase for one test"
  iterations = 200000
}
method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }
state {
  method   = method.aes_gcm.m
  enforced = true
}
`

// CheckOutputs checks that a file is encrypted, or is not, and that it contains the outputs of a workspace.
func CheckOutputs(tb testing.TB, file []byte, encrypted bool, workspace, large string) {
	tb.Helper()
	compare(tb, opened(tb, file, encrypted), wanted(workspace, large))
}

// opened returns the outputs in a file. It uses the library in the same way as other programs do.
func opened(tb testing.TB, file []byte, encrypted bool) map[string]cty.Value {
	tb.Helper()
	if bytes.Contains(file, []byte(Secret)) == encrypted {
		tb.Errorf("encrypted: %t, got %.200q", !encrypted, file)
	}
	if !encrypted {
		return parsed(tb, file)
	}
	library, err := encryption.Load(light.Registry(), encryption.Code(encryptionText, "TF_ENCRYPTION"))
	if err != nil {
		tb.Fatal(err)
	}
	opened, err := library.State().Decrypt(tb.Context(), bytes.Clone(file))
	if err != nil {
		tb.Fatal(err)
	}
	if !opened.Encrypted {
		tb.Error("the file was not encrypted")
	}
	return parsed(tb, opened.Data)
}

// parsed returns the outputs in a state.
func parsed(tb testing.TB, text []byte) map[string]cty.Value {
	tb.Helper()
	state, err := tfstate.Parse(text)
	if err != nil {
		tb.Fatal(err)
	}
	values := map[string]cty.Value{}
	for name, output := range state.Outputs {
		if values[name], err = output.Value(); err != nil {
			tb.Fatal(err)
		}
		if output.Sensitive != (name == "secret") {
			tb.Errorf("%s: sensitive: %t", name, output.Sensitive)
		}
	}
	return values
}

func compare(tb testing.TB, got, want map[string]cty.Value) {
	tb.Helper()
	for name, w := range want {
		if g, ok := got[name]; !ok || !g.RawEquals(w) {
			tb.Errorf("the output %s is %.300s, want %.300s", name, fmt.Sprintf("%#v", g), fmt.Sprintf("%#v", w))
		}
	}
	if len(got) != len(want) {
		tb.Errorf("got the outputs %q", slices.Sorted(maps.Keys(got)))
	}
}

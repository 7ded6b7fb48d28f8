package provider

import (
	"fmt"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
)

// A value that only apply brings to light.
func TestAccUnknownValues(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	v := conformance.Get("pbkdf2_sha256_key32_salt1")
	open, _ := expected(t, v)
	state := fromFile(writeTemp(t, "state", v.State()))
	passphrase := "resource \"terraform_data\" \"passphrase\" {\ninput = \"second throwaway passphrase\"\n}\n"
	blocks := func(value string) string {
		return settings(entry("key_provider", "pbkdf2", "k", "passphrase = "+value), entry("method", "aes_gcm", "m",
			`keys = "key_provider.pbkdf2.k"`), staticDefault)
	}
	result := output("all", "data.statecrypt_remote_state.s.outputs")
	advice := []string{"not known yet", "depends_on"}
	for name, c := range map[string]struct {
		provider string
		names    string // what the error says is not known
	}{
		"in a block": {blocks("terraform_data.passphrase.output"), "key_provider.pbkdf2.k.passphrase"},
		"in the text": {"provider \"statecrypt\" {\nencryption = \"${terraform_data.passphrase.output == \"\" ? \"\" : \"\"}\"\n}\n",
			"encryption"},
		"in a variable of the text": {"provider \"statecrypt\" {\nencryption = " +
			quote("key_provider \"pbkdf2\" \"k\" { passphrase = var.p }\nmethod \"aes_gcm\" \"m\" { keys = key_provider.pbkdf2.k }\nstate { "+
				"method = method.aes_gcm.m }") +
			"\nencryption_variables = { p = terraform_data.passphrase.output }\n}\n", "key_provider.pbkdf2.k.passphrase"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, map[string]string{"main.tf": configuration(passphrase, c.provider, reads("s", state), result)})
			p.wantError(append([]string{c.names}, advice...)...)
			if name != "in the text" {
				p.write("main.tf", configuration(passphrase, c.provider, reads("s", state, "depends_on = [terraform_data.passphrase]"), result))
				p.wantOutputs(map[string]cty.Value{"all": open})
			}
		})
	}
	t.Run("in the data source", func(t *testing.T) { // Terraform itself waits for it
		path := "resource \"terraform_data\" \"path\" {\ninput = " + quote(writeTemp(t, "state", v.State())) + "\n}\n"
		t.Parallel()
		newProject(t, map[string]string{"main.tf": configuration(path, blocks(`"second throwaway passphrase"`),
			reads("s", "file {\npath = terraform_data.path.output\n}"), result)}).wantOutputs(map[string]cty.Value{"all": open})
	})
	t.Run("and not needed", func(t *testing.T) { // a key that this read does not use
		unused := fmt.Sprintf("provider \"statecrypt\" {\n%skey_provider {\npbkdf2 {\nname = \"unused\"\npassphrase = "+
			"terraform_data.passphrase.output\n}\n}\n%s}\n", staticBlocks, staticDefault)
		t.Parallel()
		newProject(t, map[string]string{"main.tf": configuration(passphrase, unused,
			reads("s", fromFile(writeTemp(t, "s", sealed(t, argumentsState)))), output("serial", "data.statecrypt_remote_state.s.serial"))}).
			wantOutputs(map[string]cty.Value{"serial": cty.NumberIntVal(7)})
	})
}

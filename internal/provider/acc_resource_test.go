package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/zclconf/go-cty/cty"
)

// producedModule has resources of every shape. A secret stands where the state
// marks it: terraform_data gives its input again as its output, unmarked.
const producedModule = `
variable "secret" {
  type      = string
  sensitive = true
}
resource "terraform_data" "counted" {
  count = 2
  input = count.index
}
resource "terraform_data" "keyed" {
  for_each         = { a = "x", "b.c" = "y" }
  input            = each.value
  triggers_replace = var.secret
}
data "terraform_remote_state" "other" {
  backend  = "local"
  config   = { path = "${path.root}/none.tfstate" }
  defaults = { open = "o" }
}
`

// producedState lets the CLI write a state, and returns it encrypted: by the
// CLI itself, where it can.
func producedState(t *testing.T, secret, passphrase string) string {
	t.Helper()
	p := newProject(t, map[string]string{
		"main.tf": fmt.Sprintf("module \"net\" {\nsource = \"./m\"\nfor_each = toset([\"eu/1\"])\nsecret = sensitive(%q)\n}\n"+
			"resource \"terraform_data\" \"single\" {\ninput = { list = [1, 2.5, true], null = null }\ntriggers_replace = [\"open\", "+
			"sensitive(%q)]\n}\n", secret, secret),
		"m/main.tf":    producedModule,
		"none.tfstate": `{"version":4,"terraform_version":"1.5.0","serial":1,"lineage":"x","outputs":{},"resources":[]}`,
	})
	if isTofu() {
		p.setenv("TF_ENCRYPTION=" + passphraseText(passphrase, "method \"unencrypted\" \"u\" {}\nstate { method = method.aes_gcm.m "+
			"}\nremote_state_data_sources {\ndefault { method = method.unencrypted.u }\n}"))
	}
	p.mustRun("apply", "-auto-approve")
	state, err := os.ReadFile(filepath.Join(p.dir, "terraform.tfstate"))
	if err != nil {
		t.Fatal(err)
	}
	if !isTofu() {
		state = sealedAs(t, passphraseText(passphrase, stateTarget), string(state))
	}
	if strings.Contains(string(state), "terraform_data") {
		t.Fatal("the state is not encrypted")
	}
	return fromFile(writeTemp(t, "state", state))
}

const producedPassphrase = "the passphrase of the producer"

func resourceProvider() string {
	return fmt.Sprintf("provider \"statecrypt\" {\nallow_resource_reads = true\nencryption = %s\n}\n",
		quote(passphraseText(producedPassphrase, stateTarget)))
}

func readsResource(name, address string, body ...string) string {
	return fmt.Sprintf("data \"statecrypt_resource\" %q {\naddress = %s\n%s\n}\n", name, quote(address), strings.Join(body, "\n"))
}

func TestAccResource(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	file := producedState(t, "c4n4ry", producedPassphrase)
	const module = `module.net["eu/1"].`
	ints := cty.TupleVal([]cty.Value{cty.NumberIntVal(0), cty.NumberIntVal(1)})
	null := cty.NullVal(cty.DynamicPseudoType)
	p := newProject(t, map[string]string{"main.tf": configuration(resourceProvider(),
		readsResource("single", "terraform_data.single", file),
		readsResource("counted", module+"terraform_data.counted", file),
		readsResource("last", module+"terraform_data.counted[1]", file),
		readsResource("keyed", module+"terraform_data.keyed", file),
		readsResource("one", module+`terraform_data.keyed["b.c"]`, file),
		readsResource("other", module+"data.terraform_remote_state.other", file),
		// What was read is known when planning.
		"resource \"terraform_data\" \"each\" {\nfor_each = data.statecrypt_resource.keyed.attributes\ninput = each.value.input.value\n}\n",
		output("each", "{ for k, r in terraform_data.each : k => r.output }"),
		output("single", "data.statecrypt_resource.single.attributes.input.value"),
		output("hidden", "data.statecrypt_resource.single.attributes.triggers_replace == null"),
		output("not_stored", "nonsensitive(data.statecrypt_resource.single.sensitive_attributes == null)"),
		output("counted", "data.statecrypt_resource.counted.attributes[*].input.value"),
		output("last", "data.statecrypt_resource.last.attributes.input.value"),
		output("one", "[data.statecrypt_resource.one.attributes.input, data.statecrypt_resource.one.provider_address, "+
			"data.statecrypt_resource.one.mode, data.statecrypt_resource.one.type, data.statecrypt_resource.one.schema_version]"),
		output("other", "[data.statecrypt_resource.other.mode, data.statecrypt_resource.other.attributes.outputs.value.open, "+
			"data.statecrypt_resource.other.encrypted]"))})
	p.wantOutputs(map[string]cty.Value{
		"each": cty.ObjectVal(map[string]cty.Value{"a": cty.StringVal("x"), "b.c": cty.StringVal("y")}),
		"single": cty.ObjectVal(map[string]cty.Value{"list": cty.TupleVal([]cty.Value{cty.NumberIntVal(1), cty.NumberFloatVal(2.5), cty.True}),
			"null": null}),
		"hidden": cty.True, "not_stored": cty.True,
		"counted": ints,
		"last":    cty.NumberIntVal(1),
		"one": cty.TupleVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{"value": cty.StringVal("y"), "type": cty.StringVal("string")}),
			cty.StringVal("terraform.io/builtin/terraform"), cty.StringVal("managed"), cty.StringVal("terraform_data"), cty.NumberIntVal(0)}),
		"other": cty.TupleVal([]cty.Value{cty.StringVal("data"), cty.StringVal("o"), cty.True}),
	})
	// Asked for, they are stored, and sensitive.
	stores := readsResource("single", "terraform_data.single", file, "store_sensitive = true")
	p.write("main.tf", configuration(resourceProvider(), stores, output("hidden", "data.statecrypt_resource.single.sensitive_attributes")))
	p.wantError("sensitive")
	p.write("main.tf", configuration(resourceProvider(), stores,
		sensitiveOutput("hidden", "data.statecrypt_resource.single.sensitive_attributes.triggers_replace.value[1]")))
	p.wantOutputs(map[string]cty.Value{"hidden": cty.StringVal("c4n4ry")})
}

// Promise: Resources on request
func TestResourceMistakes(t *testing.T) {
	t.Parallel()
	state, err := os.ReadFile(filepath.Join("..", "..", "encryption", "tfstate", "testdata", "resources", "opentofu.tfstate"))
	if err != nil {
		t.Fatal(err)
	}
	file := fromFile(writeTemp(t, "state", sealed(t, string(state))))
	plain := fromFile(writeTemp(t, "plain", state))
	forbidding := textProvider(staticText)
	allowing := strings.Replace(forbidding, "{\n", "{\nallow_resource_reads = true\n", 1)
	golden := openMistakes(t, "resource of a file")
	enforcing := strings.Replace(allowing, "{\n", "{\nenforced = true\n", 1)
	for name, c := range map[string]struct {
		provider, address string
		body              []string
	}{
		"off":              {forbidding, "terraform_data.open", []string{file}},
		"misspelt":         {allowing, "terraform_data.opne", []string{file}},
		"in a module":      {allowing, "terraform_data.counted", []string{file}},
		"no such instance": {allowing, `module.net["a"].terraform_data.counted[1]`, []string{file}},
		"an attribute":     {allowing, "terraform_data.open.id", []string{file}},
		"on_missing":       {allowing, "terraform_data.open", []string{file, `on_missing = "defaults"`}},
		"no such file":     {allowing, "terraform_data.open", []string{fromFile("/no/such/file")}},
		"plaintext":        {allowing, "terraform_data.open", []string{plain}},
		"enforced":         {enforcing, "terraform_data.open", []string{plain, `method = "unencrypted"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			evaluate(t, c.provider, readsResource("r", c.address, c.body...)).wantMistake(golden, name)
		})
	}
	evaluate(t, allowing, "data \"statecrypt_resource\" \"r\" {\n"+file+"\n}\n").wantMistake(golden, "no address")
	evaluate(t, allowing, readsResource("r", "terraform_data.open", plain, `method = "unencrypted"`),
		output("mode", "data.statecrypt_resource.r.mode")).wantOutputs(map[string]cty.Value{"mode": cty.StringVal("managed")})
}

// A resource that Kubeform manages, from a manifest, without permission: there
// is nothing else in it.
func TestResourceOfObject(t *testing.T) {
	t.Parallel()
	var manifest []byte
	for _, name := range []string{"cr.json", "secret.json"} {
		data, err := os.ReadFile(filepath.Join("..", "kubestate", "testdata", "kubeform_resource_user", name))
		if err != nil {
			t.Fatal(err)
		}
		manifest = append(append(manifest, data...), '\n')
	}
	const body = "object {\napi_version = \"digitalocean.kubeform.com/v1alpha1\"\nkind = \"DatabaseUser\"\nname = \"app\"\nnamespace = " +
		"\"demo\"\n}\n"
	file := fromFile(writeTemp(t, "manifest.yaml", manifest)) + "\n" + body
	read := func(arguments string) *evaluation {
		const user = "data.statecrypt_resource.user"
		return evaluate(t, "data \"statecrypt_resource\" \"user\" {\n"+file+arguments+"\n}\n",
			output("user", "["+user+".attributes.name, "+user+".attributes.password]"),
			output("sensitive", user+".sensitive_attributes"))
	}
	user := cty.TupleVal([]cty.Value{cty.StringVal("app"), cty.NullVal(cty.DynamicPseudoType)})
	read("").wantMistake(openMistakes(t, "resource of a manifest"), "no permission")
	read(`method = "unencrypted"`).wantOutputs(map[string]cty.Value{"user": user, "sensitive": cty.NullVal(cty.DynamicPseudoType)})
	read("method = \"unencrypted\"\nstore_sensitive = true").wantOutputs(map[string]cty.Value{"user": user,
		"sensitive": cty.ObjectVal(map[string]cty.Value{"password": cty.StringVal("throwaway-db-pw")})})
}

func opensResource(name, address string, body ...string) string {
	return strings.Replace(readsResource(name, address, body...), "data ", "ephemeral ", 1)
}

func TestAccEphemeralResource(t *testing.T) {
	needAcceptance(t)
	file := producedState(t, "c4n4ry", producedPassphrase)
	keyed := opensResource("keyed", `module.net["eu/1"].terraform_data.keyed["a"]`, file)
	check := func(want knownvalue.Check, path ...string) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("echo.it", echoed(path...), want)
	}
	runEphemeral(t, resourceStep(configuration(resourceProvider(), keyed, echoes("ephemeral.statecrypt_resource.keyed")),
		check(knownvalue.StringExact("x"), "attributes", "input", "value"),
		check(knownvalue.Null(), "attributes", "triggers_replace"),
		check(knownvalue.StringExact("c4n4ry"), "sensitive_attributes", "triggers_replace", "value"),
		check(knownvalue.StringExact("terraform_data"), "type"),
		check(knownvalue.Bool(true), "encrypted")))
}

func TestEphemeralResourceMistakes(t *testing.T) {
	t.Parallel()
	golden := openMistakes(t, "ephemeral resource of a state")
	file := fromFile(writeTemp(t, "state", sealed(t, resourceState)))
	allowing := strings.Replace(textProvider(staticText), "{\n", "{\nallow_resource_reads = true\n", 1)
	evaluate(t, textProvider(staticText), opensResource("r", "aws_db.main", file)).wantMistake(golden, "off")
	evaluate(t, allowing, opensResource("r", "aws_db.main", file, "store_sensitive = true")).
		wantError(`an argument named "store_sensitive" is not expected here`)
	evaluate(t, allowing, opensResource("r", "aws_db.mian", file)).wantMistake(golden, "misspelt")
}

// A sensitive attribute is in no plan, no state, no log and nothing that is
// printed, although the data source reads the resource that has it.
//
// Promise: Sensitive outputs
func TestAccResourceSecretsStayHidden(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	var s secrets
	passphrase := s.add("passphrase")
	file := producedState(t, s.add("attribute"), passphrase)
	config := []string{
		readsResource("single", "terraform_data.single", file), readsResource("keyed", `module.net["eu/1"].terraform_data.keyed`, file),
		output("open", "[data.statecrypt_resource.single.attributes, data.statecrypt_resource.keyed.attributes]"),
	}
	if knowsEphemeral() {
		config = append(config, ephemeralVariables("passphrase"), "provider \"statecrypt\" {\nallow_resource_reads = "+
			"true\nencryption_variables = { p = var.passphrase }\nencryption = "+
			quote(strings.Replace(passphraseText("x", readerTarget), `"x"`, "var.p", 1))+"\n}\n",
			opensResource("hidden", `module.net["eu/1"].terraform_data.keyed["a"]`, file),
			"resource \"terraform_data\" \"it\" {\nlifecycle {\nprecondition {\ncondition = "+
				"startswith(ephemeral.statecrypt_resource.hidden.sensitive_attributes.triggers_replace.value, \"c4/attribute\")\nerror_message = "+
				"\"no\"\n}\n}\n}\n")
	} else {
		config = append(config, "provider \"statecrypt\" {\nallow_resource_reads = true\n}\n")
	}
	p := newProject(t, map[string]string{"main.tf": configuration(config...)})
	if knowsEphemeral() {
		p.setenv("TF_VAR_passphrase=" + passphrase)
	} else {
		p.setenv("TF_ENCRYPTION=" + passphraseText(passphrase, readerTarget))
	}
	for _, args := range [][]string{{"validate"}, {"plan", "-out=plan"}, {"show", "-json", "plan"}, {"apply", "plan"}, {"show", "-json"},
		{"plan", "-refresh-only"}} {
		isShown := !losesSchemas() || !slices.Equal(args, []string{"show", "-json", "plan"})
		if out, err := s.run(t, p, args...); err != nil && isShown {
			t.Fatalf("%s: %v\n%s", args, err, out)
		}
	}
	state, err := os.ReadFile(filepath.Join(p.dir, "terraform.tfstate"))
	if err != nil || !strings.Contains(string(state), "triggers_replace") {
		t.Errorf("the attributes did not arrive, so nothing was tested: %v\n%s", err, state)
	}
}

package remote

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"         //nolint:depguard // the test opens what the source reads
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/builtin" //nolint:depguard // the test opens what the source reads
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/cloudtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/remote/tfetest"
)

const (
	exampleState = `{"version":4,"terraform_version":"1.12.6","serial":12,"lineage":"l","resources":[],"outputs":{` +
		`"vpc_id":{"value":"vpc-1","type":"string"},"zone_id":{"value":"Z1","type":"string"},"password":{"value":"canary","type":"string","sensitive":true}}}`
	examplePassphrase = "the example's passphrase"
)

// The examples run as they are printed, with a token that may do no more than it
// has to.
func TestAccExamples(t *testing.T) {
	if os.Getenv("TF_ACC") == "" {
		t.Skip("TF_ACC is not set")
	}
	cli := os.Getenv("TF_ACC_TERRAFORM_PATH")
	if !hasEphemeralValues(t, cli) {
		t.Skip("the examples have ephemeral variables, which this version does not know")
	}
	examples := filepath.Join("..", "..", "..", "examples")
	bin := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, filepath.Join("..", "..", "..")).CombinedOutput(); err != nil { //nolint:gosec // our own program
		t.Fatalf("%v\n%s", err, out)
	}
	access := allowed(t, filepath.Join(examples, "sources/remote/policy/team.tf"))
	serve := func() *tfetest.Server {
		s := tfetest.New()
		s.Put("network", seal(t, exampleState))
		s.Put("dns", []byte(exampleState))
		s.Put("network-prod", []byte(exampleState))
		s.Tokens = map[string]tfetest.Access{readToken: access}
		return s
	}
	variables := "variable \"tfe_token\" {\n  type = string\n  ephemeral = true\n}\n"
	for name, c := range map[string]struct {
		files map[string]string // :: name → path, or text
		want  string
	}{
		"source": {map[string]string{"main.tf": filepath.Join(examples, "sources/remote/main.tf"), "outputs.tf": filepath.Join(examples, "sources/remote/outputs.tf")}, `vpc_id = "vpc-1"` + "\n" + `zone_id = "Z1"`},
		"old way": {map[string]string{
			"main.tf":    filepath.Join(examples, "guides/from-terraform-remote-state/remote/old.tf"),
			"outputs.tf": strings.Replace(variables, "ephemeral", "sensitive", 1) + "output \"vpc_id\" {\n  value = data.terraform_remote_state.network.outputs.vpc_id\n}\n",
		}, `vpc_id = "vpc-1"`},
		"new way": {map[string]string{
			"main.tf": filepath.Join(examples, "guides/from-terraform-remote-state/remote/new.tf"),
			"outputs.tf": "terraform {\n  required_providers {\n    statecrypt = { source = \"statecrypt/statecrypt\" }\n  }\n}\n" + variables +
				"output \"vpc_id\" {\n  value = data.statecrypt_remote_state.network.outputs.vpc_id\n}\n",
		}, `vpc_id = "vpc-1"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve()
			p := newProject(t, cli, cloudtest.New(t, map[string]http.Handler{"app.terraform.io": s}), false, "")
			for name, text := range c.files {
				if strings.HasSuffix(text, ".tf") {
					text = read(t, text)
				}
				if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			rc := filepath.Join(t.TempDir(), "cli.tfrc")
			text := "provider_installation {\n  dev_overrides {\n    \"statecrypt/statecrypt\" = \"" + filepath.ToSlash(bin) + "\"\n  }\n  direct {\n    exclude = [\"*/*/*\"]\n  }\n}\n"
			if err := os.WriteFile(rc, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			p.env = append(p.env, "TF_CLI_CONFIG_FILE="+rc, "TF_VAR_tfe_token="+readToken, "TF_VAR_state_passphrase="+examplePassphrase)
			if name == "old way" {
				p.run(t, "init") // which fails where a provider is overridden
			}
			out := p.run(t, "apply", "-auto-approve", "-no-color", "-input=false")
			if !strings.Contains(out, c.want) {
				t.Errorf("%q is missing in:\n%s", c.want, out)
			}
			if state := read(t, filepath.Join(p.dir, "terraform.tfstate")); name != "old way" && strings.Contains(state+out, "canary") {
				t.Errorf("a sensitive output is stored, or shown: %s\n%s", state, out)
			}
			if i := slices.IndexFunc(s.Requests(), func(r string) bool { return !strings.HasPrefix(r, "GET ") }); i >= 0 {
				t.Error("it was not only read")
			}
		})
	}
}

// allowed is what the team of a policy may do with states.
func allowed(t *testing.T, path string) tfetest.Access {
	t.Helper()
	found := regexp.MustCompile(`(?m)^ +state_versions += "(.*?)"`).FindStringSubmatch(read(t, path))
	levels := map[string]tfetest.Access{"none": tfetest.None, "read-outputs": tfetest.Outputs, "read": tfetest.Read, "write": tfetest.Write}
	if len(found) != 2 || levels[found[1]] == 0 {
		t.Fatalf("%s says nothing of states", path)
	}
	return levels[found[1]]
}

// hasEphemeralValues: since Terraform 1.10 and OpenTofu 1.11.
func hasEphemeralValues(t *testing.T, cli string) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), cli, "version")
	cmd.Env = append(os.Environ(), "CHECKPOINT_DISABLE=1", "TF_CLI_CONFIG_FILE="+os.DevNull)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var product string
	var major, minor int
	if _, err := fmt.Sscanf(string(out), "%s v%d.%d", &product, &major, &minor); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	return major > 1 || minor > 10 || minor == 10 && product == "Terraform"
}

func seal(t *testing.T, plain string) []byte {
	t.Helper()
	registry := builtin.Registry()
	cfg, err := config.Parse(strings.Replace(interopEncryption, "a passphrase for one test", examplePassphrase, 1), "example", registry.Options(cty.NilVal))
	if err != nil {
		t.Fatal(err)
	}
	enc, err := encryption.New(registry, cfg)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := enc.State().Encrypt(context.Background(), []byte(plain))
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

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

package provider

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The examples of key services are valid as they are printed, and a spelling
// mistake in them is not.
func TestAccKeyProviderExamples(t *testing.T) {
	needAcceptance(t)
	if !knowsEphemeral() {
		t.Skip("the examples have ephemeral variables, which this version does not know")
	}
	t.Parallel()
	for _, kind := range []string{"aws_kms", "gcp_kms", "azure_vault", "openbao"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("..", "..", "examples", "key-providers", kind, "provider.tf"))
			if err != nil {
				t.Fatal(err)
			}
			newProject(t, map[string]string{"main.tf": string(text)}).mustRun("validate")
			misspelt := strings.Replace(string(text), "\n    "+kind+" {\n", "\n    "+kind+" {\n      nonsense = 1\n", 1)
			if out, err := newProject(t, map[string]string{"main.tf": misspelt}).run("validate"); err == nil || !says("nonsense").MatchString(out) {
				t.Errorf("nonsense is valid:\n%s", out)
			}
		})
	}
}

// The policies are JSON.
func TestPolicyExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "key-providers", "*", "*.json"))
	if err != nil || len(files) != 3 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(text) || !strings.Contains(strings.ToLower(string(text)), "decrypt") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

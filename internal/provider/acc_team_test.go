package provider

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A state that is sealed for a team opens with the identity of one, by the
// configuration of the guide.
func TestAccTeam(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	identities := filepath.Join("..", "..", "encryption", "internal", "method", "age", "testdata")
	text := func(path ...string) string {
		b, err := os.ReadFile(filepath.Join(path...))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	ssh, key := text(identities, "ssh_ed25519.pub"), text(identities, "x25519.key")
	_, recipient, _ := strings.Cut(key, "# public key: ")
	recipient, _, _ = strings.Cut(recipient, "\n")
	state := sealedAs(t, `key_provider "age" "everybody" { recipients = ["`+strings.TrimSpace(ssh)+`", "`+recipient+`"] }
method "aes_gcm" "m" { keys = key_provider.age.everybody }
state { method = method.aes_gcm.m }
`, networkState)
	p := newProject(t, map[string]string{
		"main.tf":                      text("..", "..", "examples", "guides", "keys-for-a-team", "reader", "main.tf"),
		"key.txt":                      key,
		"../network/terraform.tfstate": string(state),
	})
	if out := p.mustRun("plan"); !strings.Contains(out, `vpc_id = "vpc-1"`) {
		t.Errorf("got %s", out)
	}
}

package provider

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/vaulttest"
)

// A read through the CLI from a real Vault, with a policy that allows to
// decrypt with one key, and nothing else.
func TestAccRealVault(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	vault := vaulttest.Start(t, "state", "other")
	sealedState := sealedAs(t, fmt.Sprintf("key_provider \"openbao\" \"b\" {\nkey_name = \"state\"\naddress = %q\ntoken = %q\n}\nmethod "+
		"\"aes_gcm\" \"m\" { keys = key_provider.openbao.b }\n%s",
		vault.Address, vault.Token, stateTarget), argumentsState)
	roleID, secretID := vault.AppRole(t, "state")
	token := vault.Reader(t, "state")
	// The policy is that of the documentation.
	policy, err := os.ReadFile(filepath.Join("..", "..", "examples", "key-providers", "openbao", "policy.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	vault.Do(t, http.MethodPut, "sys/policies/acl/"+vault.Policy(t, "state"),
		map[string]any{"policy": strings.ReplaceAll(string(policy), "tofu-state", "state")})
	address := fmt.Sprintf("address = %q", vault.Address)
	for name, c := range map[string]struct {
		key  []string // of the block
		env  []string
		off  bool     // use_environment = false
		want []string // words of the error; nil when the state is read
	}{
		"token": {[]string{address, fmt.Sprintf("token = %q", token)}, nil, false, nil},
		"approle": {[]string{address, fmt.Sprintf("auth_approle {\nrole_id = %q\nsecret_id = %q\n}", roleID, secretID)}, nil,
			false, nil},
		"environment": {nil, []string{"VAULT_ADDR=" + vault.Address, "VAULT_TOKEN=" + token}, false, nil},
		"environment off": {[]string{address, fmt.Sprintf("token = %q", token)},
			[]string{"BAO_ADDR=http://127.0.0.1:1", "BAO_TOKEN=canary", "BAO_NAMESPACE=canary", "HTTP_PROXY=http://127.0.0.1:1"}, true, nil},
		"token of the others": {[]string{address, fmt.Sprintf("token = %q", vault.Reader(t, "other"))}, nil, false,
			[]string{"(status 403)"}},
		"environment off, needed": {[]string{address}, []string{"BAO_TOKEN=" + token}, true, []string{"BAO_TOKEN"}},
	} {
		t.Run(name, func(t *testing.T) {
			block := settings(entry("key_provider", "openbao", "b", append([]string{`key_name = "state"`}, c.key...)...),
				entry("method", "aes_gcm", "m", `keys = "key_provider.openbao.b"`), staticDefault)
			if c.off {
				block = strings.Replace(block, "{", "{\nuse_environment = false", 1)
			}
			p := newProject(t, map[string]string{
				"main.tf": configuration(block, reads("s", "file {\npath = \"state\"\n}"), output("serial", "data.statecrypt_remote_state.s.serial")),
				"state":   string(sealedState),
			})
			p.setenv(c.env...)
			if c.want != nil {
				p.wantError(c.want...)
				return
			}
			p.wantOutputs(map[string]cty.Value{"serial": cty.NumberIntVal(7)})
			state, err := os.ReadFile(filepath.Join(p.dir, "terraform.tfstate"))
			if err != nil {
				t.Fatal(err)
			}
			for _, secret := range []string{token, secretID} {
				if strings.Contains(string(state), secret) {
					t.Error("the state holds what signs in to Vault")
				}
			}
		})
	}
}

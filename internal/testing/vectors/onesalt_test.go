package vectors_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/tfstate"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

// TestOneSalt: two files that one rotate has sealed share a salt. Each opens with the library, with the readers
// that were written from FORMAT.md alone, and with OpenTofu.
func TestOneSalt(t *testing.T) {
	settings := vector(t, "testdata/one_salt/settings.hcl")
	enc, err := encryption.Load(builtin.Registry(), encryption.Code(string(settings), "settings.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	salts := map[string]bool{}
	for _, name := range []string{"first", "second"} {
		file := vector(t, "testdata/one_salt/"+name+".tfstate")
		var envelope struct{ Meta map[string][]byte }
		if err := json.Unmarshal(file, &envelope); err != nil {
			t.Fatal(err)
		}
		salts[string(envelope.Meta["key_provider.pbkdf2.p"])] = true
		opened, err := enc.State().Decrypt(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		holds(t, name, opened.Data)
		for reader, command := range map[string][]string{
			"python": {"python3", absolute(t, "../../../conformance/adapters/minimal.py")},
			"node":   {"node", absolute(t, "../../../conformance/adapters/node/main.js")},
			"tofu":   {"sh", absolute(t, "../../../conformance/adapters/tofu.sh")},
		} {
			t.Run(name+", "+reader, func(t *testing.T) {
				t.Parallel()
				env := gittest.Environ(t.TempDir())
				if reader == "tofu" {
					env = append(env, "TOFU="+testkit.Program(t, "STATECRYPT_TOFU"), "CHECKPOINT_DISABLE=1", "TF_CLI_CONFIG_FILE="+os.DevNull)
				}
				if _, err := exec.LookPath(command[0]); err != nil {
					t.Skip(err)
				}
				cmd := exec.CommandContext(t.Context(), command[0], command[1:]...) //nolint:gosec // a reader of the suite
				cmd.Dir, cmd.Stdin = t.TempDir(), bytes.NewReader(file)
				cmd.Env = append(env, "CASE_KIND=opentofu_state", "TF_ENCRYPTION="+string(settings))
				holds(t, name, output(t, cmd))
			})
		}
	}
	if len(salts) != 1 || salts[""] {
		t.Errorf("%d salts", len(salts))
	}
}

// holds compares the one output of a state.
func holds(t *testing.T, want string, plain []byte) {
	t.Helper()
	state, err := tfstate.Parse(plain)
	if err != nil {
		t.Fatal(err)
	}
	value, err := state.Outputs["name"].Value()
	if err != nil || value.AsString() != want {
		t.Errorf("%v, %v", value, err)
	}
}

func vector(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(path))
	if err != nil {
		t.Fatal(err)
	}
	return []byte(strings.ReplaceAll(string(text), "\r\n", "\n"))
}

package vectors_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/tfstate"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/vaulttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/vectors"
)

// What OpenTofu seals with a real Vault, we open, with a token that may only
// decrypt; what we seal with it, OpenTofu opens: states and plans.
func TestRealVaultInterop(t *testing.T) {
	t.Parallel()
	tofu := tofuPath(t)
	vault := vaulttest.Start(t, "tofu")
	const text = `key_provider "openbao" "k" { key_name = "tofu" }
method "aes_gcm" "m" { keys = key_provider.openbao.k }
state {
  method   = method.aes_gcm.m
  enforced = true
}
plan {
  method   = method.aes_gcm.m
  enforced = true
}
`
	// Nothing is remembered from one to the next.
	as := func(token string) *encryption.Encryption {
		t.Helper()
		registry := builtin.Registry()
		cfg, err := config.Parse(text, "TF_ENCRYPTION", registry.Options(cty.NilVal))
		if err != nil {
			t.Fatal(err)
		}
		variables := map[string]string{"BAO_ADDR": vault.Address, "BAO_TOKEN": token}
		cfg.LookupEnv = func(name string) (string, bool) {
			v, ok := variables[name]
			return v, ok
		}
		enc, err := encryption.New(registry, cfg)
		if err != nil {
			t.Fatal(err)
		}
		return enc
	}
	reader := vault.Reader(t, "tofu")
	open := func(target encryption.Target, file []byte) []byte {
		t.Helper()
		data, err := openSealed(target, file)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	seal := func(target encryption.Target, dir, name string, plain []byte) {
		t.Helper()
		sealed, err := target.Encrypt(t.Context(), plain)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), sealed)
		sealedFile(t, dir, name)
	}
	env := append(gittest.Environ(t.TempDir()), "TF_ENCRYPTION="+text, "CHECKPOINT_DISABLE=1", "TF_INPUT=0", "BAO_ADDR="+vault.Address,
		"BAO_TOKEN="+vault.Token)
	run := func(dir string, args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), tofu, args...) //nolint:gosec // the tool under test
		cmd.Dir, cmd.Env = dir, env
		return output(t, cmd)
	}
	var want map[string]vectors.Output
	if err := json.Unmarshal([]byte(interopOutputs), &want); err != nil {
		t.Fatal(err)
	}

	theirs := t.TempDir()
	write(t, filepath.Join(theirs, "main.tf"), []byte(interopModule))
	run(theirs, "plan", "-out=plan")
	run(theirs, "apply", "plan")
	state, err := tfstate.Parse(open(as(reader).State(), sealedFile(t, theirs, "terraform.tfstate")))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, state, want)
	plan := open(as(reader).Plan(), sealedFile(t, theirs, "plan"))
	archive, err := zip.NewReader(bytes.NewReader(plan), int64(len(plan)))
	if err != nil || !slices.ContainsFunc(archive.File, func(f *zip.File) bool { return f.Name == "tfplan" }) {
		t.Errorf("this is not a plan: %v", err)
	}

	ours := t.TempDir()
	write(t, filepath.Join(ours, "main.tf"), []byte(interopModule))
	seal(as(vault.Token).State(), ours, "terraform.tfstate", []byte(interopState))
	compareJSON(t, run(ours, "output", "-json"), want)
	seal(as(vault.Token).Plan(), ours, "plan", plan)
	var shown struct {
		Planned struct {
			Outputs json.RawMessage `json:"outputs"`
		} `json:"planned_values"`
	}
	if err := json.Unmarshal(run(ours, "show", "-json", "plan"), &shown); err != nil {
		t.Fatal(err)
	}
	compareJSON(t, shown.Planned.Outputs, want)

	if _, err := as(reader).State().Encrypt(t.Context(), []byte(interopState)); err == nil {
		t.Error("the token of a reader makes keys")
	}
}

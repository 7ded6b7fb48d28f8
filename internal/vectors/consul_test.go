package vectors_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/consul"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/consul/consultest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/tfstate"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/vectors"
)

// What OpenTofu seals and keeps in Consul, compressed, we read and open.
func TestConsul(t *testing.T) {
	const text = `
key_provider "pbkdf2" "k" {
  passphrase = "a passphrase for one test"
  iterations = 200000
}
method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }
state {
  method   = method.aes_gcm.m
  enforced = true
}`
	tofu := tofuPath(t)
	server := consultest.New(t)
	server.Writable = true
	dir := t.TempDir()
	write(t, filepath.Join(dir, "main.tf"), []byte(`terraform {
  backend "consul" {
    path = "network"
    gzip = true
  }
}
`+interopModule))
	for _, args := range [][]string{{"init"}, {"workspace", "new", "staging"}, {"apply", "-auto-approve"}} {
		cmd := exec.CommandContext(t.Context(), tofu, args...) //nolint:gosec // OpenTofu
		cmd.Dir = dir
		cmd.Env = append(gittest.Environ(t.TempDir()), "TF_CLI_CONFIG_FILE="+os.DevNull, "TF_ENCRYPTION="+text, "CHECKPOINT_DISABLE=1", "TF_INPUT=0", "CONSUL_HTTP_ADDR="+server.URL)
		output(t, cmd)
	}

	kind := consul.Kind()
	place, err := config.NewEntry("consul", kind.Table, map[string]cty.Value{"path": cty.StringVal("network")}).Decode(kind.Table, nil)
	if err != nil {
		t.Fatal(err)
	}
	address := config.NewEntry("credentials[0].consul[0]", kind.Credentials, map[string]cty.Value{"address": cty.StringVal(server.URL)})
	open := kind.Start(source.Settings{Credentials: source.Credentials{Table: kind.Credentials, Entries: []*config.Entry{address}}})
	src, err := open(source.Request{Values: place, Workspace: "staging", MaxSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := src.Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	registry := builtin.Registry()
	cfg, err := config.Parse(text, "TF_ENCRYPTION", registry.Options(cty.NilVal))
	if err != nil {
		t.Fatal(err)
	}
	enc, err := encryption.New(registry, cfg)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := openSealed(enc.State(), snapshot.Data)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := tfstate.Parse(plain)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]vectors.Output
	if err := json.Unmarshal([]byte(interopOutputs), &want); err != nil {
		t.Fatal(err)
	}
	compare(t, parsed, want)
}

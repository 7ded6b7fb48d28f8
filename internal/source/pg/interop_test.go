package pg

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"         //nolint:depguard // what is read must open
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/builtin" //nolint:depguard // the same
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/pg/pgtest"
)

// clis are the real programs that write states: OpenTofu where make has built
// it, and terraform where there is one.
func clis(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	if tofu := os.Getenv("STATECRYPT_TOFU"); tofu != "" {
		found["tofu"] = tofu
	}
	if terraform, err := exec.LookPath("terraform"); err == nil {
		found["terraform"] = terraform
	}
	if len(found) == 0 {
		t.Skip("there is neither STATECRYPT_TOFU nor terraform in PATH")
	}
	return found
}

const tofuEncryption = `
	key_provider "pbkdf2" "p" {
	  passphrase = "a passphrase for one test"
	  iterations = 200000
	}
	method "aes_gcm" "m" { keys = key_provider.pbkdf2.p }
	state {
	  method   = method.aes_gcm.m
	  enforced = true
	}`

// States that a real CLI writes through its pg backend are read back, by a role
// that may do nothing else.
func TestRealBackend(t *testing.T) {
	for name, cli := range clis(t) {
		t.Run(name, func(t *testing.T) { testBackend(t, cli, name, "", "terraform_remote_state", "states") })
		t.Run(name+", odd schema", func(t *testing.T) { testBackend(t, cli, name, "", `My "odd" Schema; --'x`, "states") })
		if name == "tofu" {
			t.Run("tofu, encrypted", func(t *testing.T) { testBackend(t, cli, name, tofuEncryption, "terraform_remote_state", "states") })
			t.Run("tofu, odd table", func(t *testing.T) { testBackend(t, cli, name, "", "Schema", `Tab "le" é`) })
		}
	}
}

func testBackend(t *testing.T, cli, name, encrypted, schema, table string) {
	s := postgres(t)
	database := fmt.Sprintf("of_%s_%d", name, tables.Add(1))
	s.Exec(t, "postgres", "CREATE DATABASE "+database)
	dir, ca := t.TempDir(), caFile(t, s)
	tableName := ""
	if name == "tofu" {
		tableName = fmt.Sprintf("table_name = %q", table)
	}
	file(t, filepath.Join(dir, "main.tf"), fmt.Sprintf(`
		terraform {
		  backend "pg" {
		    conn_str    = %q
		    schema_name = %q
		    %s
		  }
		}
		output "greeting" { value = "hello from ${terraform.workspace}" }
	`, s.URL("admin", pgtest.AdminPassword, database, "sslmode=verify-full&sslrootcert="+ca), schema, tableName))
	run := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), cli, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+os.DevNull, "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1", "TF_WORKSPACE=", "TF_DATA_DIR=", "TF_ENCRYPTION="+encrypted, "TF_INPUT=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	run("init")
	run("apply", "-auto-approve")
	run("workspace", "new", "staging")
	run("apply", "-auto-approve")

	quoted := func(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
	grants := strings.NewReplacer("terraform_remote_state", quoted(schema), ".states", "."+quoted(table)).Replace(example(t, "reader.sql"))
	s.Exec(t, database, grants+"; ALTER ROLE state_reader PASSWORD '"+readerPassword+"'")
	defer s.Exec(t, database, "DROP OWNED BY state_reader; DROP ROLE state_reader")
	for _, workspace := range []string{"default", "staging"} {
		r := request(t, attrs{"schema_name": text(schema), "table_name": text(table)}, nil)
		r.Workspace = workspace
		src, err := start(settingsOf(attrs{"conn_str": text(s.URL("state_reader", readerPassword, database, "sslmode=verify-full&sslrootcert="+ca))}))(r)
		if err != nil {
			t.Fatal(err)
		}
		snap, err := src.Fetch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if held := s.Value(t, database, fmt.Sprintf("SELECT data FROM %s.%s WHERE name = $1", quoted(schema), quoted(table)), workspace); held != string(snap.Data) {
			t.Error("this is not what the server holds")
		}
		if got, want := greeting(t, snap, encrypted), "hello from "+workspace; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if len(snap.Warnings) > 0 {
			t.Errorf("got warnings: %q", snap.Warnings)
		}
	}
}

// greeting is the output of the state, which is opened first where it is
// encrypted.
func greeting(t *testing.T, snap *source.Snapshot, text string) string {
	t.Helper()
	data := snap.Data
	if text != "" {
		registry := builtin.Registry()
		cfg, err := config.Parse(text, "TF_ENCRYPTION", registry.Options(cty.NilVal))
		if err != nil {
			t.Fatal(err)
		}
		enc, err := encryption.New(registry, cfg)
		if err != nil {
			t.Fatal(err)
		}
		opened, err := enc.State().Decrypt(t.Context(), data)
		if err != nil {
			t.Fatal(err)
		}
		if !opened.Encrypted {
			t.Error("the state was not encrypted")
		}
		data = opened.Data
	}
	var state struct {
		Outputs map[string]struct{ Value string }
	}
	if err := json.Unmarshal(data, &state); err != nil {
		t.Fatal(err)
	}
	return state.Outputs["greeting"].Value
}

// example is a file of the documentation.
func example(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "sources", "pg", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

package provider

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	providerschema "github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"go.yaml.in/yaml/v3"
)

// TestAccReadingGuide: the job of the guide on reading OpenTofu's states reads one, and hands a
// sensitive output to a write-only argument of another provider, and to nobody else. The
// provider of Vault is a stub with the arguments of the real one, version 5.
func TestAccReadingGuide(t *testing.T) {
	needAcceptance(t)
	if runtime.GOOS == "windows" || !knowsEphemeral() || cliMinor() < 11 {
		t.Skip("this CLI has no write-only arguments, or the stub cannot be started here")
	}
	t.Parallel()
	guide := filepath.Join("..", "..", "examples", "guides", "terraform-reading-opentofu-state")
	network := bucket(t, "acme-states", "network/terraform.tfstate", []byte(sealExample(t, guideState)))
	database := bucket(t, "acme-states", "database/terraform.tfstate", []byte(sealExample(t, databaseState)))
	s := storeFirst(t, nil)
	s.hosts["acme-states.s3.eu-west-1.amazonaws.com"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "network") {
			network.ServeHTTP(w, r)
			return
		}
		database.ServeHTTP(w, r)
	})
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct {
				Run string
				Env map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(readText(t, filepath.Join(guide, "github.yml"))), &workflow); err != nil {
		t.Fatal(err)
	}
	p := s.project(t, map[string]string{
		"main.tf": readText(t, filepath.Join(guide, "main.tf")), "database.tf": readText(t, filepath.Join(guide, "write-only", "main.tf"))})
	written := withVault(t, p)
	steps := workflow.Jobs["apply"].Steps
	last := steps[len(steps)-1]
	if len(last.Env) != 1 || last.Env["TF_VAR_state_passphrase"] != "${{ secrets.STATE_PASSPHRASE }}" { // which the project has
		t.Errorf("the job has %q", last.Env)
	}
	p.wantFirst(last.Run, `vpc_id = "vpc-1"`)
	if got := readText(t, written); got != `secret database 1 {"password":"canary-password"}` {
		t.Errorf("written: %s", got)
	}
	stored := readText(t, filepath.Join(p.dir, "terraform.tfstate"))
	if strings.Contains(stored, "canary") || !strings.Contains(stored, "vault_kv") {
		t.Errorf("a secret is stored, or nothing:\n%s", stored)
	}
}

// TestAccEphemeralProvider: an ephemeral resource configures the provider of Vault, and its
// token is stored nowhere.
func TestAccEphemeralProvider(t *testing.T) {
	needAcceptance(t)
	if runtime.GOOS == "windows" || !knowsEphemeral() {
		t.Skip("this CLI has no ephemeral resources, or the stub cannot be started here")
	}
	t.Parallel()
	server, examples := exampleServer(t), filepath.Join("..", "..", "examples")
	folders := []string{filepath.Join(examples, "provider"), filepath.Join(examples, "ephemeral-resources", "statecrypt_remote_state")}
	p := exampleProject(t, folders, strings.NewReplacer(exampleHost, server.Origin))
	p.write("secret.tf", `resource "vault_kv_secret_v2" "x" {
  mount = "secret"
  name  = "x"
}`)
	written := withVault(t, p)
	p.mustRun("apply", "-auto-approve")
	if got := readText(t, written+".provider"); got != "https://vault.example.com canary-token" {
		t.Errorf("the provider has got %s", got)
	}
	if stored := p.state(); strings.Contains(stored, "canary") || !strings.Contains(stored, "vault_kv") {
		t.Errorf("a secret is stored, or nothing:\n%s", stored)
	}
}

// withVault gives a project the stub. It writes what it gets into a file.
func withVault(t *testing.T, p *project) (written string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	stub, written := t.TempDir(), filepath.Join(t.TempDir(), "written")
	script := "#!/bin/sh\n" + vaultStub + "='" + written + "' exec '" + program + "'\n"
	if err := os.WriteFile(filepath.Join(stub, "terraform-provider-vault"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	var settings string
	for _, v := range p.env {
		if name, file, _ := strings.Cut(v, "="); name == "TF_CLI_CONFIG_FILE" {
			settings = readText(t, file)
		}
	}
	settings = strings.Replace(settings, "dev_overrides {\n", "dev_overrides {\n\"hashicorp/vault\" = "+quote(stub)+"\n", 1)
	p.setenv("TF_CLI_CONFIG_FILE=" + writeTemp(t, "cli.tfrc", []byte(settings)))
	return written
}

// vaultStub is the variable with which the program of the tests is the stub; it names the
// file that gets what is written.
const vaultStub = "STATECRYPT_TEST_VAULT"

type vault struct{ written string }

func serveVault(written string) error {
	return providerserver.Serve(context.Background(), func() provider.Provider { return vault{written} },
		providerserver.ServeOpts{Address: "registry.terraform.io/hashicorp/vault"})
}

func (vault) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "vault"
}

func (vault) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema.Attributes = map[string]providerschema.Attribute{
		"address": providerschema.StringAttribute{Optional: true}, "token": providerschema.StringAttribute{Optional: true},
	}
}

func (v vault) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var address, token types.String
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("address"), &address)...)
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("token"), &token)...)
	if err := os.WriteFile(v.written+".provider", []byte(address.ValueString()+" "+token.ValueString()), 0o600); err != nil {
		resp.Diagnostics.AddError("stub", err.Error())
	}
}

func (vault) DataSources(context.Context) []func() datasource.DataSource { return nil }
func (v vault) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{func() resource.Resource { return kvSecret{v} }}
}

type kvSecret struct{ vault }

func (kvSecret) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "vault_kv_secret_v2"
}

func (kvSecret) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"mount": schema.StringAttribute{Required: true}, "name": schema.StringAttribute{Required: true},
		"data_json_wo":         schema.StringAttribute{Optional: true, WriteOnly: true},
		"data_json_wo_version": schema.Int64Attribute{Optional: true},
	}}
}

func (s kvSecret) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var text [3]types.String
	for i, name := range []string{"mount", "name", "data_json_wo"} {
		resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root(name), &text[i])...)
	}
	var version types.Int64
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("data_json_wo_version"), &version)...)
	line := text[0].ValueString() + " " + text[1].ValueString() + " " + version.String() + " " + text[2].ValueString()
	if err := os.WriteFile(s.written, []byte(line), 0o600); err != nil {
		resp.Diagnostics.AddError("stub", err.Error())
	}
	resp.State.Raw = req.Plan.Raw
}

func (kvSecret) Read(context.Context, resource.ReadRequest, *resource.ReadResponse)       {}
func (kvSecret) Update(context.Context, resource.UpdateRequest, *resource.UpdateResponse) {}
func (kvSecret) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}

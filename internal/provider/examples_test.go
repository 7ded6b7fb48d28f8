package provider

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

const (
	exampleHost   = "https://gitlab.example.com"
	exampleDaemon = "http://127.0.0.1:6061" // terraform-backend-git's own address

	networkState  = `{"version":4,"terraform_version":"1.12.6","serial":12,"lineage":"3f1c1c50-2b1e-4b0e-9d6a-0d0c6f7d8a11","resources":[{"module":"module.net[\"eu\"]","mode":"managed","type":"aws_subnet","name":"private","provider":"provider[\"registry.opentofu.org/hashicorp/aws\"]","instances":[{"index_key":"eu-west-1a","schema_version":1,"attributes":{"id":"subnet-1"},"sensitive_attributes":[]},{"index_key":"eu-west-1b","schema_version":1,"attributes":{"id":"subnet-2"},"sensitive_attributes":[]}]}],"outputs":{"vpc_id":{"value":"vpc-1","type":"string"}}}`
	databaseState = `{"version":4,"terraform_version":"1.12.6","serial":1,"lineage":"l","resources":[{"mode":"managed","type":"aws_db_instance","name":"main","provider":"provider[\"registry.opentofu.org/hashicorp/aws\"]","instances":[{"index_key":0,"schema_version":2,"attributes":{"password":"canary-password"},"sensitive_attributes":[[{"type":"get_attr","value":"password"}]]}]}],"outputs":{"password":{"value":"canary-password","type":"string","sensitive":true}}}`
	vaultState    = `{"version":4,"terraform_version":"1.12.6","serial":1,"lineage":"l","resources":[],"outputs":{"address":{"value":"https://vault.example.com","type":"string"},"token":{"value":"canary-token","type":"string","sensitive":true}}}`
	stagingState  = `{"version":4,"terraform_version":"1.12.6","serial":1,"lineage":"l","resources":[],"outputs":{}}`
)

// Every example runs as it is printed, but for the names of the servers.
func TestAccExamples(t *testing.T) {
	needAcceptance(t)
	if !knowsEphemeral() {
		t.Skip("the examples have ephemeral variables, which this version does not know")
	}
	examples := filepath.Join("..", "..", "examples")
	shared := filepath.Join(examples, "provider")
	for name, c := range map[string]struct {
		dirs []string
		want []string
	}{
		"demo": {[]string{filepath.Join(examples, "demo")},
			[]string{`vpc_id = "vpc-0a1b2c3d4e5f"`}},
		"sops": {[]string{filepath.Join(examples, "sops")}, []string{`vpc_id = "vpc-0a1b2c3d4e5f"`, `"db_password"`}},
		"data source": {[]string{shared, filepath.Join(examples, "data-sources", "statecrypt_remote_state")},
			[]string{`vpc_id = "vpc-1"`, warnDefaults}},
		"resource": {[]string{filepath.Join(examples, "data-sources", "statecrypt_resource")},
			[]string{`"eu-west-1b" = "subnet-2"`, `database_user = "app-user"`}},
		"ephemeral resource": {[]string{filepath.Join(examples, "ephemeral-resources", "statecrypt_resource")}, []string{"Apply complete"}},
		"ephemeral derived key": {[]string{shared, filepath.Join(examples, "ephemeral-resources", "statecrypt_derived_key")},
			[]string{"Apply complete"}},
		"terraform-backend-git": {[]string{shared, filepath.Join(examples, "guides", "leaving-terraform-backend-git")},
			[]string{`locked_by = "alice@example.com"`, "The state is locked", "Apply complete"}},
		"two keys, and credentials": {[]string{shared, filepath.Join(examples, "guides", "terraform-reading-opentofu-state", "rotated")},
			[]string{`vpc_id                   = "vpc-1"`, "written_with_the_old_key = false"}},
		"several sources": {[]string{filepath.Join(examples, "settings", "several-sources")},
			[]string{`vpc_id = "vpc-1"`, `region = "eu-west-1"`}},
		"provider settings alone": {[]string{shared}, []string{"Apply complete"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := exampleServer(t)
			p := exampleProject(t, c.dirs, strings.NewReplacer(exampleHost, server.Origin, exampleDaemon, server.Origin))
			out := p.mustRun("apply", "-auto-approve")
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("%q is missing in:\n%s", want, out)
				}
			}
			state, err := os.ReadFile(filepath.Join(p.dir, "terraform.tfstate"))
			if err == nil && strings.Contains(string(state), "canary") {
				t.Errorf("a sensitive output is stored: %s", state)
			}
		})
	}
}

// exampleServer stands in for the GitLab of the examples: a private group of
// repositories, and no state under its state API.
func exampleServer(t *testing.T) *gittest.HTTPServer {
	t.Helper()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main",
		gittest.File{Path: "network/terraform.tfstate", Data: sealExample(t, networkState)},
		gittest.File{Path: "database/terraform.tfstate", Data: sealExample(t, databaseState)},
		gittest.File{Path: "vault/terraform.tfstate", Data: sealExample(t, vaultState)},
		gittest.File{Path: "legacy/terraform.tfstate", Data: stagingState})
	repo.Commit("refs/heads/locks/legacy/terraform.tfstate",
		gittest.File{Path: "legacy/terraform.tfstate.lock", Data: `{"ID":"1","Who":"alice@example.com"}`})
	return gittest.HTTP(t, repo, gittest.HTTPOptions{
		Username: "ci", Password: "example-token",
		Before: func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("type") == "git" { // terraform-backend-git
				_, _ = w.Write([]byte(stagingState))
				return true
			}
			if !strings.HasPrefix(r.URL.Path, "/api/v4/") {
				return false
			}
			if r.Header.Get("Authorization") != "" {
				t.Error("the credentials for git went to the state API")
			}
			w.WriteHeader(http.StatusNotFound)
			return true
		},
	})
}

func sealExample(t *testing.T, plain string) string {
	t.Helper()
	return string(sealedAs(t, `
key_provider "pbkdf2" "main" {
  passphrase = "the example's passphrase"
  iterations = 200000
}
method "aes_gcm" "main" { keys = key_provider.pbkdf2.main }
state { method = method.aes_gcm.main }`, plain))
}

// exampleProject has the files of an example, with other names in them, and what
// they refer to beside it.
func exampleProject(t *testing.T, dirs []string, names *strings.Replacer) *project {
	t.Helper()
	files := map[string]string{}
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if !entry.IsDir() { // else a module of its own
				files[entry.Name()] = names.Replace(readText(t, filepath.Join(dir, entry.Name())))
			}
		}
	}
	passphrase, isDemo := files["passphrase.txt"]
	if !isDemo {
		passphrase = "the example's passphrase"
	}
	p := newProject(t, files)
	p.write(filepath.Join("..", "network", "terraform.tfstate.d", "staging", "terraform.tfstate"), stagingState)
	p.setenv("TF_VAR_state_passphrase="+strings.TrimSpace(passphrase), "TF_VAR_old_passphrase=an older passphrase",
		"TF_VAR_git_token=example-token", "TF_VAR_api_token=example-token")
	return p
}

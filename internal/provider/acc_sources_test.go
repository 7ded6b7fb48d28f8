package provider

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

const tofuPassphrase = "a passphrase for one test"

// encryptedByTofu returns a state that OpenTofu writes now, with the text of
// its configuration.
func encryptedByTofu(t *testing.T) (state []byte, text string) {
	t.Helper()
	tofu := testkit.Program(t, "STATECRYPT_TOFU")
	text = fmt.Sprintf("key_provider \"pbkdf2\" \"k\" {\npassphrase = %q\niterations = 200000\n}\n", tofuPassphrase) +
		"method \"aes_gcm\" \"m\" { keys = key_provider.pbkdf2.k }\nstate {\nmethod = method.aes_gcm.m\nenforced = true\n}\n"
	dir := t.TempDir()
	module := `resource "terraform_data" "it" { input = "resource-secret" }
output "text" { value = "héllo ${terraform_data.it.output == "resource-secret"}" }
output "number" { value = 123456789012345678901234567890 }
output "set" { value = toset(["b", "a"]) }
output "object" { value = { list = tolist([1, 2]), nothing = null, tuple = ["a", true] } }
output "secret" {
  value = "s3cret"
  sensitive = true
}`
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(module), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init"}, {"apply", "-auto-approve"}} {
		cmd := exec.Command(tofu, args...)
		cmd.Dir = dir
		cmd.Env = append(gittest.Environ(t.TempDir()), "TF_ENCRYPTION="+text, "CHECKPOINT_DISABLE=1", "TF_INPUT=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("tofu %s: %v\n%s", args[0], err, out)
		}
	}
	state, err := os.ReadFile(filepath.Join(dir, "terraform.tfstate"))
	if err != nil {
		t.Fatal(err)
	}
	return state, text
}

// A state that the real OpenTofu has just written, from every kind of source
// at once.
func TestAccStateOfRealTofu(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	state, text := encryptedByTofu(t)
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	commit := repo.Commit("refs/heads/main", gittest.File{Path: "envs/prod/terraform.tfstate", Data: string(state)})
	https := gittest.HTTP(t, repo, gittest.HTTPOptions{Username: "ci", Password: "git-password", TLS: true})
	ssh := gittest.SSH(t, repo)
	server := serve(t, httptest.NewServer, func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ci" || password != "http-password" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("ETag", `W/"v7"`)
		_, _ = w.Write(state)
	})

	provider := fmt.Sprintf(`provider "statecrypt" {
  encryption = %s
  credentials {
    git {
      url      = "%s/acme/"
      username = "ci"
      password = "git-password"
      ca_file  = %s
    }
    git {
      url                  = "ssh://%s:%s/"
      ssh_private_key_file = %s
    }
    http {
      url      = "%s/"
      username = "ci"
      password = "http-password"
    }
  }
}`, quote(text), https.Origin, quote(https.CAFile), ssh.Host, ssh.Port, quote(ssh.KeyFile), server.URL)

	revision := map[string]cty.Value{"https": cty.StringVal(commit), "ssh": cty.StringVal(commit), "http": cty.StringVal("v7"),
		"file": cty.NullVal(cty.String)}
	config, want := []string{provider}, map[string]cty.Value{}
	for name, source := range map[string]string{
		"https": fromGit(https.URL, "main", "envs/prod/terraform.tfstate"),
		"ssh":   fromGit(ssh.URL, commit, "envs/prod/terraform.tfstate"),
		"http":  fromHTTP(server.URL + "/state"),
		"file":  fromFile(writeTemp(t, "terraform.tfstate", state)),
	} {
		address := "data.statecrypt_remote_state." + name
		config = append(config, reads(name, source, "store_sensitive = true"),
			output(name, address+".outputs"),
			output(name+"_about", fmt.Sprintf("[%[1]s.exists, %[1]s.encrypted, %[1]s.decrypted_with, %[1]s.sensitive_output_names, %[1]s.revision]",
				address)),
			sensitiveOutput(name+"_sensitive", address+".sensitive_outputs"))
		want[name] = cty.ObjectVal(map[string]cty.Value{
			"text":   cty.StringVal("héllo true"),
			"number": cty.MustParseNumberVal("123456789012345678901234567890"),
			"set":    cty.SetVal([]cty.Value{cty.StringVal("a"), cty.StringVal("b")}),
			"object": cty.ObjectVal(map[string]cty.Value{
				"list":    cty.ListVal([]cty.Value{cty.NumberIntVal(1), cty.NumberIntVal(2)}),
				"nothing": cty.NullVal(cty.DynamicPseudoType),
				"tuple":   cty.TupleVal([]cty.Value{cty.StringVal("a"), cty.True}),
			}),
		})
		want[name+"_about"] = cty.TupleVal([]cty.Value{cty.True, cty.True, cty.StringVal("method.aes_gcm.m"),
			cty.ListVal([]cty.Value{cty.StringVal("secret")}), revision[name]})
		want[name+"_sensitive"] = cty.ObjectVal(map[string]cty.Value{"secret": cty.StringVal("s3cret")})
	}
	p := newProject(t, map[string]string{"main.tf": configuration(config...)})
	p.setenv("GIT_SSH_COMMAND=" + ssh.Command(ssh.KnownHosts))
	p.wantOutputs(want)
}

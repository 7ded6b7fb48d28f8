package provider

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

// Repositories that terraform-backend-git wrote in its encryption modes, with
// its environment and an empty git block.
func TestTerraformBackendGitModes(t *testing.T) {
	isolateGit(t)
	const (
		inner = "key_provider {\npbkdf2 {\nname = \"k\"\npassphrase = \"correct-horse-battery-staple\"\n}\n}\n"
		tofu  = "aes_gcm {\nname = \"m\"\nkeys = \"key_provider.pbkdf2.k\"\n}\n"
		aes   = "method {\nterraform_backend_git {\nname = \"m\"\n}\n}\n"
		then  = "then = \"method.aes_gcm.m\"\n"
	)
	simple := cty.ObjectVal(map[string]cty.Value{"n": cty.NumberIntVal(42), "who": cty.StringVal("public")})
	for name, c := range map[string]struct {
		ref, path string // "" for terraform-backend-git's own default
		blocks    string // in the provider block
		method    string
		env       []string
	}{
		"aes": {"", "my/state.json", aes, "terraform_backend_git",
			nil},
		"aes_amend": {"", "amended.json", aes, "terraform_backend_git", nil},
		"aes_implicit_locked": {"main", "deep/path/to/prod.tfstate", aes,
			"terraform_backend_git", nil},
		"aes_over_tofu_encryption": {"", "my/state.json", inner + "method {\n" + tofu + "terraform_backend_git {\nname = \"m\"\n" + then +
			"}\n}\n", "terraform_backend_git", nil},
		"sops_age_over_tofu_encryption": {"", "my/state.json", inner + "method {\n" + tofu + "sops {\nname = \"m\"\n" + then + "}\n}\n", "sops",
			[]string{"SOPS_AGE_KEY=AGE-SECRET-KEY-1WP9VPNFJJY0F4PL8M6NFV7S3X2U4ALJCLJM0PE2WD78WA8MHKNKS6GTX78"}},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && len(c.blocks) > len(aes) {
				t.Skip("deriving its key takes long")
			}
			repo := gittest.NewRepo(t, gittest.RepoOptions{})
			repo.Unbundle(filepath.Join("..", "source", "git", "testdata", "terraform-backend-git", name+".bundle"))
			server := gittest.HTTP(t, repo, gittest.HTTPOptions{Username: "ci", Password: "git-password"})
			const address = "data.statecrypt_remote_state.it"
			for _, pair := range slices.Concat(c.env, []string{"TF_BACKEND_GIT_GIT_REPOSITORY=" + server.URL, "TF_BACKEND_GIT_GIT_REF=" + c.ref,
				"TF_BACKEND_GIT_GIT_STATE=" + c.path, "GIT_USERNAME=ci", "GIT_PASSWORD=git-password"}) {
				variable, value, _ := strings.Cut(pair, "=")
				t.Setenv(variable, value)
			}
			want := map[string]cty.Value{"outputs": simple, "lock": cty.NullVal(lockType)}
			for _, v := range conformance.All() {
				if v.Name != "tbg_"+name {
					continue
				}
				for variable, value := range v.BackendEnv {
					t.Setenv(variable, value)
				}
				want["outputs"], _ = expected(t, v)
			}
			locked := output("lock", address+".lock")
			if name == "aes_implicit_locked" {
				locked, want["lock"] = output("lock", address+".lock.who"), cty.StringVal("tester@example.test")
			}
			settings := "provider \"statecrypt\" {\n" + c.blocks + "default {\nmethod = \"method." + c.method + ".m\"\n}\n}\n"
			e := patient(builtinKinds()).evaluate(t, settings, reads("it", "git {}"), output("outputs", address+".outputs"), locked)
			e.wantOutputs(want)
			if c.method == "terraform_backend_git" {
				e.wantWarning("Weak encryption")
			}
		})
	}
}

package provider

import (
	"path/filepath"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

// A repository that terraform-backend-git wrote, with its environment and
// nothing else.
func TestAccTerraformBackendGit(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Unbundle(filepath.Join("..", "source", "git", "testdata", "terraform-backend-git", "plain.bundle"))
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{Username: "ci", Password: "git-password"})
	environ := []string{
		"TF_BACKEND_GIT_GIT_REPOSITORY=" + server.URL, "TF_BACKEND_GIT_GIT_STATE=my//state.json",
		"GIT_USERNAME=ci", "GIT_PASSWORD=git-password",
	}
	const address = "data.statecrypt_remote_state.it"
	files := map[string]string{"main.tf": configuration(
		"variable \"on_locked\" {\ntype = string\ndefault = null\n}\n",
		reads("it", "git {\non_locked = var.on_locked\n}", `method = "unencrypted"`),
		output("outputs", address+".outputs"), output("lock", address+".lock"),
	)}
	outputs := cty.ObjectVal(map[string]cty.Value{"n": cty.NumberIntVal(42), "who": cty.StringVal("public")})

	p := newProject(t, files)
	p.wantError("TF_BACKEND_GIT_GIT_REPOSITORY")
	p.setenv(environ...)
	p.setenv("TF_VAR_on_locked=error")
	p.mustRun("validate")
	p.wantOutputs(map[string]cty.Value{"outputs": outputs})

	repo.Commit("refs/heads/locks/my/state.json", gittest.File{Path: "my/state.json.lock",
		Data: `{"ID":"aaaa-1111","Operation":"OperationTypeApply","Who":"::error::tester@example.test","Created":"2024-05-06T07:08:09Z"}`})
	p.wantError(headed(stepFetch, `":\u003aerror:\u003atester@example.test"`, `"OperationTypeApply"`, `"aaaa-1111"`)...)

	p = newProject(t, files)
	p.setenv(environ...)
	p.setenv("TF_VAR_on_locked=warn")
	if out := p.mustRun("plan"); !says("Warning: Locked state", "The state is locked (who:").MatchString(out) {
		t.Errorf("there is no warning of the lock:\n%s", out)
	}
	p.wantOutputs(map[string]cty.Value{"outputs": outputs, "lock": cty.ObjectVal(map[string]cty.Value{
		"id": cty.StringVal("aaaa-1111"), "operation": cty.StringVal("OperationTypeApply"),
		"who": cty.StringVal(`:\u003aerror:\u003atester@example.test`), "created": cty.StringVal("2024-05-06T07:08:09Z"),
	})})
}

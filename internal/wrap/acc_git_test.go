package wrap_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

// A state is written to git, changed, planned and applied, moved, and destroyed; a lock that is left is
// shown and given back, and no object is plaintext.
//
// Promise: Only encrypted states
func TestAccGit(t *testing.T) {
	testkit.OneIsEnough(t)
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true, FirstIsDefault: true}) // without a commit
	p := newProject(t, nil, empty)
	p.with.Where.Backend = gitBlock(repo.FileURL())
	p.must(t, "init")
	p.must(t, "apply", "-auto-approve")
	if code, err, out := p.wrapped(t, "plan", "-detailed-exitcode"); code != 0 || err != nil {
		t.Errorf("after apply: %d, %v\n%s", code, err, out)
	}
	for _, args := range [][]string{{"plan"}, {"init"}, {"init", "-reconfigure"}, {"init", "-migrate-state"}} { // by who forgets wrap
		says := `address(": required field is not set| argument is required)`
		if args[0] == "plan" {
			says = "nitialization required"
		}
		if code, out := p.bare(t, p.cli, nil, args...); code != 1 || !regexp.MustCompile(says).MatchString(out) {
			t.Errorf("%q without wrap: %d\n%s", args, code, out)
		}
	}
	p.must(t, "state", "mv", "terraform_data.x", "terraform_data.y")
	p.must(t, "state", "mv", "terraform_data.y", "terraform_data.x")
	if out := p.must(t, "output", "-raw", "text"); !strings.HasSuffix(out, secret) {
		t.Errorf("the output is %s", out)
	}
	const left = `{"ID":"11111111-2222-4333-8444-555555555555","Operation":"OperationTypeApply","Info":"","Who":"ann@host","Version":"1.12.6",` +
		`"Created":"2026-11-27T00:00:00Z","Path":""}`
	repo.Commit("refs/heads/locks/"+statePath, gittest.File{Path: statePath + ".lock", Data: left})
	code, err, out := p.wrapped(t, "apply", "-auto-approve", "-lock-timeout=1s")
	if code == 0 || !strings.Contains(out, `"ann@host"`) {
		t.Errorf("held: %d, %v\n%s", code, err, out)
	}
	p.must(t, "force-unlock", "-force", "11111111-2222-4333-8444-555555555555")
	p.must(t, "destroy", "-auto-approve")
	if refs := repo.Git("for-each-ref", "--format=%(refname)"); refs != "refs/heads/main" {
		t.Errorf("there are %s", refs)
	}
	messages := repo.Git("log", "--format=%s", "main")
	if strings.ReplaceAll(messages+"\n", "Update "+statePath+"\n", "") != "Begin\n" {
		t.Errorf("there are commits\n%s", messages)
	}
	if bytes.Contains(everything(t, repo), []byte(secret)) {
		t.Error("an object holds the secret")
	}
	p.checkClean(t)
}

package wrap_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/git"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// statePath is where tests have a state in a repository.
const statePath = "net/prod.tfstate"

// gitBlock is a backend block that keeps the state in a repository.
func gitBlock(repository string) *unstable.Entry {
	return unstable.NewEntry("backend.git", git.Kind().Table, map[string]cty.Value{
		"repository": cty.StringVal(repository), "ref": cty.StringVal("main"), "path": cty.StringVal(statePath),
	})
}

// newRepository has one commit, in which is a state, "" for none.
func newRepository(t *testing.T, there string) *gittest.Repo {
	t.Helper()
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
	putInto(repo, there)
	return repo
}

func putInto(repo *gittest.Repo, there string) {
	files := []gittest.File{{Path: "README", Data: "hello"}}
	if there != "" {
		files = append(files, gittest.File{Path: statePath, Data: there})
	}
	repo.Commit("refs/heads/main", files...)
}

// everything is what is in all objects of a repository.
func everything(t *testing.T, repo *gittest.Repo) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "cat-file", "--batch-all-objects", "--batch")
	cmd.Dir = repo.Dir
	all, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// inRepo is a scripted run whose state is in a repository.
func inRepo(t *testing.T, repository, script string, args ...string) (o wrap.Options, dir string, out *lines) {
	t.Helper()
	o, dir, out = scripted(t, newStore(t), script, args...)
	o.Environ = slices.DeleteFunc(o.Environ, func(pair string) bool {
		return strings.HasPrefix(pair, "STATECRYPT_HTTP_") || strings.HasPrefix(pair, "TF_BACKEND_GIT_") || strings.HasPrefix(pair, "GIT_")
	})
	o.Where.Backend = gitBlock(repository)
	return o, dir, out
}

// TestInGit: wrap keeps a state in git as it does in a backend, and whatever becomes of a run, no
// object is plaintext that was not before, no folder is left, and only a killed run leaves a lock.
//
// Promise: Only encrypted states
func TestInGit(t *testing.T) {
	needSignals(t)
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	const mine = `{"ID":"1","Operation":"OperationTypeApply","Who":"me@host","Created":"2026-11-27T00:00:00Z"}`
	newer := strings.Replace(state, `"serial":1`, `"serial":2`, 1)
	sealed := string(seal(t, sealing, state))
	aes, sops := conformance.Get("tbg_aes"), conformance.Get("tbg_sops_age")
	beside := func(method, block string) string {
		return strings.Replace(sealing, "state { method", "method \""+method+"\" \"old\" {\n"+block+"\n}\nstate {\n"+
			"fallback { method = method."+method+".old }\nmethod", 1)
	}
	ofAES := beside("terraform_backend_git", `passphrase = "`+aes.BackendEnv["TF_BACKEND_HTTP_ENCRYPTION_PASSPHRASE"]+`"`)
	identity, err := filepath.Abs("../../conformance/cases/tbg_sops_age/age_identity.txt")
	if err != nil {
		t.Fatal(err)
	}
	ofSops := beside("sops", `age_identity_files = ["`+filepath.ToSlash(identity)+`"]`)
	ofAES, ofSops = strings.TrimSuffix(ofAES, " }")+"\n}", strings.TrimSuffix(ofSops, " }")+"\n}"
	mistakes := wraptest.OpenMistakes(t, "in git")
	for name, c := range testkit.Some(map[string]struct {
		script   string
		args     []string
		there    string // in the repository
		files    map[string]string
		settings string
		held     bool
		moveIn   bool
		code     int
		want     string // what is in the file, opened
		left     bool   // the lock is
	}{
		"the first": {script: "LOCK=" + mine + " GET POST:1=" + state + " UNLOCK=" + mine, want: state},
		"the next":  {script: "LOCK=" + mine + " GET POST:1=" + newer + " UNLOCK=" + mine, there: sealed, want: newer},
		"twice": {
			script: "LOCK=" + mine + " GET POST:1=" + state + " POST:1=" + newer + " UNLOCK=" + mine, there: sealed, want: newer,
		},
		"without a lock": {script: "GET POST=" + newer, args: []string{"apply", "-lock=false"}, there: sealed, want: newer},
		"without, while held": {
			script: "GET POST=" + newer, args: []string{"apply", "-lock=false"}, there: sealed, held: true, code: 9, want: state, left: true,
		},
		"held":              {script: "LOCK=" + mine, there: sealed, held: true, code: 9, want: state, left: true},
		"read while held":   {script: "GET", args: []string{"output"}, there: sealed, held: true, want: state, left: true},
		"apply, killed":     {script: "LOCK=" + mine + " GET die", there: sealed, code: 137, want: state, left: true},
		"plan, killed":      {script: "LOCK=" + mine + " GET die", args: []string{"plan"}, there: sealed, code: 137, want: state},
		"unlocked by force": {script: "UNLOCK", args: []string{"force-unlock", "4711"}, there: sealed, held: true, want: state},
		"another, by force": {
			script: "UNLOCK", args: []string{"force-unlock", "42"}, there: sealed, held: true, code: 9, want: state, left: true,
		},
		"none, by force":     {script: "UNLOCK", args: []string{"force-unlock", "4711"}, there: sealed, code: 9, want: state},
		"a plaintext state":  {script: "GET", there: filled, code: 9},
		"encrypted in place": {script: "GET", args: []string{"init"}, there: filled, moveIn: true, want: counted(filled)},
		"encrypted already":  {script: "GET", args: []string{"init"}, there: sealed, moveIn: true, want: state},
		"encrypted, held":    {script: "ready", args: []string{"init"}, there: filled, moveIn: true, held: true, code: 1, left: true},
		"AES": {
			script: "GET", args: []string{"init"}, there: string(aes.State()), settings: ofAES, moveIn: true, want: counted(plainOf(t, "tbg_aes")),
		},
		"sops": {
			script: "GET", args: []string{"init"}, there: string(sops.State()), settings: ofSops, moveIn: true,
			want: counted(plainOf(t, "tbg_sops_age")),
		},
		"AES, without method": {script: "GET", args: []string{"init"}, there: string(aes.State()), moveIn: true, code: 1},
		"left by the daemon": {script: "ready", args: []string{"init"}, files: map[string]string{
			"git_http_backend.auto.tf": inside(`backend "http" { address = "http://localhost:6061/" }`)}, code: 1},
	}) {
		t.Run(name, func(t *testing.T) {
			repo := newRepository(t, c.there)
			args := c.args
			if args == nil {
				args = []string{"apply"}
			}
			o, dir, out := inRepo(t, repo.FileURL(), c.script, args...)
			o.Wishes.EncryptExisting = c.moveIn
			if c.settings != "" {
				o.Keys.State = target(t, c.settings)
			}
			for name, text := range c.files {
				write(t, filepath.Join(dir, name), text)
			}
			if c.held {
				repo.Commit("refs/heads/locks/"+statePath, gittest.File{Path: statePath + ".lock", Data: lock})
			}
			code, err, told := run(t, o)
			mistakes.Ended(t, name, strings.ReplaceAll(told, repo.FileURL(), "REPOSITORY"), code, err)
			if code != c.code {
				t.Errorf("got %d, %v, want %d\n%s", code, err, c.code, out)
			}
			if c.want != "" {
				opened, err := target(t, sealing).Decrypt(t.Context(), []byte(repo.Git("cat-file", "blob", "main:"+statePath)))
				if err != nil || !isSameJSON(opened.Data, []byte(c.want)) {
					t.Errorf("the repository has something else, or it does not open: %v", err)
				}
			}
			if left := repo.Git("for-each-ref", "refs/heads/locks/"); (left != "") != c.left {
				t.Errorf("the lock is there: %q", left)
			}
			if all := everything(t, repo); bytes.Contains(all, []byte(`"terraform_version"`)) && !strings.Contains(c.there, `"terraform_version"`) {
				t.Errorf("a state in plaintext is in an object")
			}
			if name == "twice" {
				repo.Git("fsck", "--strict")
			}
		})
	}
	if left, err := filepath.Glob(filepath.Join(temporary, "statecrypt-*")); err != nil || len(left) > 0 {
		t.Errorf("this is left: %v, %v", left, err)
	}
}

// isSameJSON compares but for white space: sops and terraform-backend-git have ways of their own.
func isSameJSON(one, other []byte) bool {
	var a, b any
	return json.Unmarshal(one, &a) == nil && json.Unmarshal(other, &b) == nil && reflect.DeepEqual(a, b)
}

// plainOf is what a state of the conformance suite holds.
func plainOf(t *testing.T, name string) string {
	t.Helper()
	return read(t, "../../conformance/cases/"+name+"/backend_get_response.json")
}

package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

// comment says what a plan does, without values.
const comment = created + "\nPlan: 1 to add, 0 to change, 0 to destroy.\nChanges to Outputs:\n"

const wrapped = "../../examples/guides/wrap-in-ci/"

// under has a runner work with wrap: the settings of the guide, with another backend.
func under(t *testing.T, backend string) runner {
	t.Helper()
	r := newRunner(t, "")
	keys := read(t, wrapped+"keys.hcl")
	_, rest, ok := strings.Cut(keys, "\n}\n")
	if !ok || !strings.HasPrefix(keys, "backend ") {
		t.Fatal(keys)
	}
	write(t, r.file("keys.hcl"), backend+rest)
	_, ours := identity(t, "x25519.key")
	_, others := identity(t, "other.key")
	write(t, r.file("team.txt"), ours+"\n")
	write(t, r.file("apply.txt"), others+"\n")
	write(t, r.file("backend.tf"), "terraform {\n  backend \"http\" {}\n}\n")
	if err := os.RemoveAll(r.file(".terraform")); err != nil {
		t.Fatal(err)
	}
	r.secrets["secrets.STATE_IDENTITY"] = privateKey(t, "x25519.key")
	r.secrets["secrets.PLAN_IDENTITY"] = privateKey(t, "other.key")
	r.secrets["secrets.STATES_TOKEN"] = canary
	r.secrets["github.token"] = canary
	r.secrets["github.event.pull_request.html_url"] = "https://github.com/acme/net/pull/1"
	r.program(t, "statecrypt", `exec '`+built(t)+`' "$@"`)
	path := r.environ[len(r.environ)-1]
	r.environ = append(slices.DeleteFunc(r.environ, func(v string) bool { return strings.HasPrefix(v, "TF_ENCRYPTION=") }), path)
	return r
}

// checkWrapped: the first job cannot open the plan that is stored, and what is kept and shown
// holds no secret.
func (r runner) checkWrapped(t *testing.T, stored, printed, state string) {
	t.Helper()
	for name, file := range map[string]string{"plan": stored, "state": state} {
		if !strings.HasPrefix(file, `{"`) || strings.Contains(file, canary) {
			t.Errorf("the %s that is stored is %.60q", name, file)
		}
	}
	if strings.Contains(printed, "AGE-SECRET") || strings.Contains(printed, canary+" of an output") {
		t.Errorf("this is printed: %s", printed)
	}
	config := read(t, r.file("keys.hcl"))
	for _, name := range []string{"team.txt", "apply.txt"} {
		config = strings.ReplaceAll(config, `"`+name, `"`+r.file(name))
	}
	settings, there := write(t, r.file("absolute.hcl"), config), write(t, r.file("stored"), state)
	for identity, code := range map[string]int{"": exitFailure, r.secrets["secrets.PLAN_IDENTITY"]: 0} {
		environ := []string{"TF_VAR_state_identity=" + r.secrets["secrets.STATE_IDENTITY"], "TF_VAR_plan_identity=" + identity,
			"TF_VAR_states=https://example.com", "TF_VAR_job_token=" + canary}
		var out, problems strings.Builder
		plan := write(t, r.file("sealed"), stored)
		if got := run(t.Context(), []string{"decrypt", "-config", settings, "-plan", plan}, nil, &out, &problems, environ); got != code {
			t.Errorf("the plan opens with %d, with the key %.20q: %s", got, identity, &problems)
		}
		opens(t, environ, settings, there, canary+" of a resource")
	}
	r.checkLeft(t)
}

// keepsNoPlaintext runs what a job does with a state that could not be written: if it is plaintext,
// as a wrap that was killed leaves it, it is encrypted, or not kept.
func (r runner) keepsNoPlaintext(t *testing.T, script string, environ ...string) {
	t.Helper()
	keys := read(t, r.file("keys.hcl"))
	for name, settings := range map[string]string{"can be encrypted": keys, "cannot be": keys + "}"} {
		_ = os.Remove(r.file("errored.encrypted"))
		write(t, r.file("errored.tfstate"), plain)
		write(t, r.file("keys.hcl"), settings)
		out, _ := r.script(t, script, environ...)
		kept, err := os.ReadFile(r.file("errored.encrypted"))
		if (err == nil) != (settings == keys) || strings.Contains(string(kept), canary) || strings.Contains(out, canary) {
			t.Errorf("%s: %v, %.60q is kept\n%s", name, err, kept, out)
		}
	}
	write(t, r.file("keys.hcl"), keys)
	_ = os.Remove(r.file("errored.tfstate"))
	_ = os.Remove(r.file("errored.encrypted"))
}

// The workflow of the guide for GitHub, over git.
func TestGitHubWraps(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
	server := gittest.HTTP(t, repo, gittest.HTTPOptions{Username: "x-access-token", Password: canary})
	backend, _, _ := strings.Cut(read(t, wrapped+"keys.hcl"), "\n}\n")
	r := under(t, strings.Replace(backend, "https://github.com/acme/states.git", server.URL, 1)+"\n}\n")
	r.program(t, "gh", `[ "$GH_TOKEN" = `+canary+` ] && [ "$1 $2 $3 $4" = "pr comment https://github.com/acme/net/pull/1 --body-file" ] && cp "$5" comment.md`)
	var w workflow
	decode(t, read(t, wrapped+"github.yml"), &w)
	if w.Jobs["apply"].Needs != "plan" || w.Jobs["apply"].Environment == "" || w.Jobs["plan"].Environment != "" {
		t.Errorf("got %+v", w.Jobs)
	}
	artifacts := map[string]string{}
	job := func(name string) (string, error) {
		job := r
		environ := append(r.variables(t, w.Env), r.variables(t, w.Jobs[name].Env)...)
		job.environ = append(environ, r.environ...)
		return job.job(t, w.Jobs[name].Steps, artifacts)
	}
	printed, err := job("plan")
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	if got := read(t, r.file("comment.md")); got != comment {
		t.Errorf("the comment is %q", got)
	}

	applied, err := job("apply")
	if err != nil {
		t.Fatalf("%v\n%s", err, applied)
	}
	r.checkWrapped(t, artifacts["tfplan"], printed+applied, repo.Git("show", "main:net.tfstate"))

	more := "resource \"terraform_data\" \"another\" {}\n"
	write(t, r.file("more.tf"), more)
	if planned, err := job("plan"); err != nil {
		t.Fatalf("%v\n%s", err, planned)
	}
	hook := filepath.Join(repo.Dir, "hooks", "update") // by which the server refuses states, and no locks
	if err := errors.Join(os.MkdirAll(filepath.Dir(hook), 0o700),
		os.WriteFile(hook, []byte("#!/bin/sh\ntest \"$1\" != refs/heads/main\n"), 0o700)); err != nil {
		t.Fatal(err)
	}
	failed, err := job("apply")
	if err == nil || artifacts["errored"] == "" || strings.Contains(artifacts["errored"], canary) {
		t.Errorf("the state that could not be written is %q: %v\n%s", artifacts["errored"], err, failed)
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	for _, s := range w.Jobs["apply"].Steps {
		if s.If == "${{ !success() }}" && s.Run != "" {
			r.keepsNoPlaintext(t, s.Run, r.variables(t, s.Env)...)
		}
	}
	clone := under(t, strings.Replace(backend, "https://github.com/acme/states.git", server.URL, 1)+"\n}\n")
	write(t, clone.file("errored"), artifacts["errored"])
	write(t, clone.file("more.tf"), more)
	environ := []string{"TF_VAR_plan_identity=", "TF_VAR_state_identity=" + r.secrets["secrets.STATE_IDENTITY"], "STATECRYPT_CONFIG=keys.hcl",
		"GIT_USERNAME=x-access-token", "GIT_PASSWORD=" + canary}
	if out, err := clone.script(t, "statecrypt recover errored", environ...); err == nil {
		t.Errorf("nobody knows what the run has begun with, and nobody says so: %s", out)
	}
	recovered := clone.must(t, "statecrypt recover -force errored\nstatecrypt wrap -- terraform init\n"+
		"statecrypt wrap -- terraform plan", environ...)
	if !strings.Contains(recovered, "No changes.") {
		t.Errorf("after it is written, a plan says %s", recovered)
	}
	r.checkWrapped(t, artifacts["tfplan"], failed+recovered, repo.Git("show", "main:net.tfstate"))
}

// Likewise for GitLab, with its own states.
func TestGitLabWraps(t *testing.T) {
	t.Parallel()
	s := newHTTPStore(t, "")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, _, _ := r.BasicAuth(); user != "gitlab-ci-token" || !strings.HasPrefix(r.URL.Path, "/projects/42/terraform/state/net") {
			http.NotFound(w, r)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/lock") {
			r.Method = map[string]string{http.MethodPost: "LOCK", http.MethodDelete: "UNLOCK"}[r.Method]
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	r := under(t, read(t, wrapped+"gitlab.hcl"))
	var pipeline struct {
		Include []struct {
			Inputs map[string]string
		}
		Variables   map[string]string
		Plan, Apply struct {
			Script      []yaml.Node
			After       []yaml.Node `yaml:"after_script"`
			Environment string
			Needs       []string
		}
	}
	decode(t, read(t, wrapped+"gitlab.yml"), &pipeline)
	if pipeline.Apply.Environment == "" || pipeline.Plan.Environment != "" || !slices.Equal(pipeline.Apply.Needs, []string{"plan"}) {
		t.Fatalf("got %+v", pipeline)
	}
	scripts := included(t, pipeline.Include[0].Inputs)
	for name, value := range pipeline.Variables {
		value = os.Expand(value, func(name string) string {
			return map[string]string{"CI_API_V4_URL": server.URL, "CI_PROJECT_ID": "42", "CI_JOB_TOKEN": canary}[name]
		})
		r.environ = slices.Insert(r.environ, 0, name+"="+value)
	}
	r.environ = slices.Insert(r.environ, 0, "CI_PROJECT_DIR="+r.dir, "TF_VAR_state_identity="+r.secrets["secrets.STATE_IDENTITY"])
	printed := r.must(t, scriptOf(t, pipeline.Plan.Script, scripts))
	stored := read(t, r.file("tfplan"))
	if !strings.HasSuffix(printed, comment) {
		t.Errorf("the job prints %s", printed)
	}
	printed += r.must(t, scriptOf(t, pipeline.Apply.Script, scripts), "TF_VAR_plan_identity="+r.secrets["secrets.PLAN_IDENTITY"])
	r.keepsNoPlaintext(t, scriptOf(t, pipeline.Apply.After, scripts))
	r.checkWrapped(t, stored, printed, s.state)
}

// Likewise for Atlantis, over git and over http.
func TestAtlantisWraps(t *testing.T) {
	t.Parallel()
	repo := gittest.NewRepo(t, gittest.RepoOptions{Push: true})
	s := newHTTPStore(t, "")
	for kind, c := range map[string]struct {
		backend string
		state   func() string
	}{
		"git": {fmt.Sprintf("backend \"git\" {\n  repository = %q\n  ref = \"main\"\n  path = \"net.tfstate\"\n}\n", repo.FileURL()),
			func() string { return repo.Git("show", "main:net.tfstate") }},
		"http": {s.block(), func() string { return s.state }},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := under(t, c.backend)
			plan := r.file("default.tfplan")
			r.environ = slices.Insert(r.environ, 0, "PLANFILE="+plan, "TF_VAR_state_identity="+r.secrets["secrets.STATE_IDENTITY"],
				"TF_VAR_plan_identity="+r.secrets["secrets.PLAN_IDENTITY"])
			var config struct {
				Workflows map[string]struct {
					Plan, Apply struct{ Steps []yaml.Node }
				}
			}
			decode(t, read(t, wrapped+"atlantis.yaml"), &config)
			steps := config.Workflows["wrap"]
			printed, err := r.atlantis(t, steps.Plan.Steps)
			if err != nil {
				t.Fatalf("%v\n%s", err, printed)
			}
			stored := read(t, plan)
			failed, err := r.failing(t).atlantis(t, steps.Apply.Steps)
			if _, gone := os.Stat(plan); err == nil || gone != nil {
				t.Errorf("after a failure: %v, %v", err, gone)
			}
			applied, err := r.atlantis(t, steps.Apply.Steps)
			if err != nil {
				t.Fatalf("%v\n%s", err, applied)
			}
			if _, err := os.Stat(plan); err == nil {
				t.Error("the plan is still there, for Atlantis to offer")
			}
			r.checkWrapped(t, stored, printed+failed+applied, c.state())
		})
	}
}

// TestTerragruntShim: Terragrunt finds the shim of the guide in PATH. It asks it for a version without settings, which
// there are not yet then, and works in the folders of units.
func TestTerragruntShim(t *testing.T) {
	t.Parallel()
	s := newHTTPStore(t, "")
	r := under(t, s.block())
	environ := []string{"TF_VAR_plan_identity=" + r.secrets["secrets.PLAN_IDENTITY"],
		"TF_VAR_state_identity=" + r.secrets["secrets.STATE_IDENTITY"], "TF_INPUT=false",
		"TG_TF_PATH=terraform", "TERRAGRUNT_TFPATH=terraform"}
	out := r.must(t, read(t, "../../examples/guides/terragrunt/shim.sh")+`
(cd / && terraform -version && terraform version -json)
terraform init -input=false -no-color
terraform plan -input=false -lock-timeout=20m -out=unit.tfplan
terraform show -json unit.tfplan >/dev/null
terraform apply -auto-approve -input=false unit.tfplan
terraform output -json >outputs.json
terraform providers lock -platform=linux_amd64 -help >/dev/null
unset STATECRYPT_CONFIG
terraform fmt -check main.tf`, environ...)
	if !strings.Contains(out, "Terraform v") || !strings.Contains(out, `"terraform_version"`) {
		t.Errorf("the version is %s", out)
	}
	if !strings.HasPrefix(s.state, `{"`) || strings.Contains(s.state, canary) {
		t.Errorf("this is stored: %.60q", s.state)
	}
	if outputs := read(t, r.file("outputs.json")); !strings.Contains(outputs, canary) {
		t.Errorf("the outputs are %s", outputs)
	}
	if out, err := r.script(t, "rm -r .terraform; terraform init", "PATH="+r.file(".shims")+":"+os.Getenv("PATH")); err == nil ||
		!strings.Contains(out, "address argument is required") {
		t.Errorf("without wrap, it says %v, %s", err, out)
	}
}

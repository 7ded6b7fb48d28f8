package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

const (
	pipelines = "../../examples/guides/plans-in-ci/"
	actions   = "../../actions/"

	created = "  # terraform_data.x will be created" // of what a plan may say
)

// runner is a machine of a pipeline: it runs shell scripts in the folder of a module.
type runner struct {
	realCLI

	environ []string
	sh      string            // "" is the first in the PATH of the tests
	secrets map[string]string // and other expressions of GitHub
}

// newRunner has Terraform, and the command if path is its folder, in PATH.
func newRunner(t *testing.T, path string) runner {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the scripts are for a shell")
	}
	r := runner{realCLI: terraform(t, configuration)}
	if path != "" {
		path += ":"
	}
	r.secrets = map[string]string{"secrets.PLAN_IDENTITY": privateKey(t, "x25519.key"), "runner.temp": t.TempDir()}
	r.environ = append(world.World{}.Environ().Pairs(), "HOME="+r.dir, "TF_CLI_CONFIG_FILE="+os.DevNull, "CHECKPOINT_DISABLE=1",
		"TF_ENCRYPTION=of the state", "TMPDIR="+t.TempDir(), "GITHUB_STEP_SUMMARY="+r.file("summary.md"),
		"RUNNER_TEMP="+r.secrets["runner.temp"], "GITHUB_PATH="+r.secrets["runner.temp"]+"/path",
		"PATH="+path+filepath.Dir(r.path)+":"+os.Getenv("PATH"))
	_, recipient := identity(t, "x25519.key")
	write(t, r.file("team.txt"), "# the team\n"+recipient+"  \r\n")
	return r
}

// script runs a script in the way of GitHub, and returns what it prints.
func (r runner) script(t *testing.T, script string, environ ...string) (string, error) {
	t.Helper()
	return r.shell(t, "-ec", script, environ...)
}

func (r runner) shell(t *testing.T, flags, script string, environ ...string) (string, error) {
	t.Helper()
	return r.run(t, []string{cmp.Or(r.sh, "sh"), flags, script}, environ...)
}

func (r runner) run(t *testing.T, args []string, environ ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Env = r.dir, append(slices.Clone(r.environ), environ...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (r runner) must(t *testing.T, script string, environ ...string) string {
	t.Helper()
	out, err := r.script(t, script, environ...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return out
}

// program puts a script in front of all others in PATH.
func (r *runner) program(t *testing.T, name, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := r.environ[len(r.environ)-1]
	r.environ = append(slices.Clone(r.environ), strings.Replace(path, "PATH=", "PATH="+dir+":", 1))
}

// failing has a Terraform that applies nothing, with an exit code of its own.
func (r runner) failing(t *testing.T) runner {
	t.Helper()
	r.program(t, "terraform", `case "$1 $2" in *apply*) exit 7 ;; esac; exec '`+r.path+`' "$@"`)
	return r
}

// checkFailed: a plan could not be applied, the exit code is Terraform's own, and the
// plan is nowhere in plaintext.
func (r runner) checkFailed(t *testing.T, err error, plan string) {
	t.Helper()
	if failed, ok := errors.AsType[*exec.ExitError](err); !ok || failed.ExitCode() != 7 {
		t.Errorf("it ends with %v", err)
	}
	if _, err := os.Stat(plan); err == nil {
		t.Error("the plan is still there after a failure")
	}
	r.checkLeft(t)
}

// checkLeft: no script leaves a key, or anything else, in the folder for temporary files.
func (r runner) checkLeft(t *testing.T) {
	t.Helper()
	if left := r.must(t, `ls -A "$TMPDIR"`); left != "" {
		t.Errorf("this is left: %s", left)
	}
}

// privateKey is what people put into a secret of their pipeline.
func privateKey(t *testing.T, name string) string {
	t.Helper()
	path, _ := identity(t, name)
	return regexp.MustCompile(`AGE-SECRET-KEY-\w+`).FindString(read(t, path))
}

// decode reads a file of YAML as its program does; a file with "spec" has two documents.
func decode(t *testing.T, text string, to any) {
	t.Helper()
	if _, after, ok := strings.Cut(text, "\n---\n"); ok {
		text = after
	}
	if err := yaml.Unmarshal([]byte(text), to); err != nil {
		t.Fatal(err)
	}
}

// step is one of GitHub's.
type step struct {
	Uses, Run, If, Shell string
	With, Env            map[string]string
}

// expand fills in the expressions of GitHub that values has; there must be no others.
func expand(t *testing.T, text string, values map[string]string) string {
	t.Helper()
	return regexp.MustCompile(`\$\{\{ (.*?) \}\}`).ReplaceAllStringFunc(text, func(all string) string {
		value, ok := values[strings.TrimSuffix(strings.TrimPrefix(all, "${{ "), " }}")]
		if !ok {
			t.Errorf("there is no %s", all)
		}
		return value
	})
}

// action runs one of our actions with the inputs that a step gives it.
func (r runner) action(t *testing.T, name string, with map[string]string) (string, error) {
	t.Helper()
	var a struct {
		Inputs map[string]struct{ Default string }
		Runs   struct{ Steps []step }
	}
	decode(t, read(t, actions+name+"/action.yml"), &a)
	values := map[string]string{"inputs.version || github.action_ref": with["version"], "runner.temp": r.secrets["runner.temp"]}
	for input, declared := range a.Inputs {
		values["inputs."+input] = declared.Default
	}
	for input, value := range with {
		if _, ok := a.Inputs[input]; !ok {
			t.Errorf("%s has no input %s", name, input)
		}
		values["inputs."+input] = value
	}
	path, err := filepath.Abs(actions + name)
	if err != nil || len(a.Runs.Steps) != 1 {
		t.Fatalf("%v: %+v", err, a)
	}
	environ := []string{"GITHUB_ACTION_PATH=" + path}
	for variable, value := range a.Runs.Steps[0].Env {
		environ = append(environ, variable+"="+expand(t, value, values))
	}
	shell, ok := strings.CutSuffix(a.Runs.Steps[0].Shell, " {0}") // which GitHub replaces by a file with the script
	if !ok {
		return r.script(t, a.Runs.Steps[0].Run, environ...)
	}
	script := write(t, filepath.Join(t.TempDir(), "script"), a.Runs.Steps[0].Run)
	return r.run(t, append(strings.Fields(shell), script), environ...)
}

// workflow is one of GitHub's.
type workflow struct {
	Env  map[string]string
	Jobs map[string]struct {
		Needs, Environment string
		Env                map[string]string
		Steps              []step
	}
}

// The workflow of the guide, as it is printed: what is stored between its jobs, or shown,
// holds no secret, and the first cannot open it.
func TestGitHubPipeline(t *testing.T) {
	t.Parallel()
	r := newRunner(t, filepath.Dir(built(t)))
	var w workflow
	decode(t, read(t, pipelines+"github.yml"), &w)
	if w.Jobs["apply"].Needs != "plan" || w.Jobs["apply"].Environment == "" || w.Jobs["plan"].Environment != "" {
		t.Errorf("got %+v", w.Jobs)
	}
	artifacts := map[string]string{}
	printed, err := r.job(t, w.Jobs["plan"].Steps, artifacts)
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	failed, err := r.failing(t).job(t, w.Jobs["apply"].Steps, artifacts)
	r.checkFailed(t, err, r.file("tfplan"))
	applied, err := r.job(t, w.Jobs["apply"].Steps, artifacts)
	if err != nil {
		t.Fatalf("%v\n%s", err, applied)
	}
	checkPipeline(t, r, artifacts["tfplan"], printed+failed+applied+read(t, r.file("summary.md")))
	if summary := read(t, r.file("summary.md")); !strings.Contains(summary, created) || strings.Contains(summary, canary) {
		t.Errorf("the summary is %s", summary)
	}
}

const ofPull = "github.event_name == 'pull_request'" // which every run here is

// job runs the steps of a job on a machine of its own. After a failure, only those run
// that always do.
func (r runner) job(t *testing.T, steps []step, artifacts map[string]string) (printed string, failed error) {
	t.Helper()
	_ = os.Remove(r.file("tfplan"))
	for _, s := range steps {
		runs := failed == nil
		switch s.If {
		case "", ofPull:
		case "always()":
			runs = true
		case "${{ !success() }}":
			runs = failed != nil
		default:
			t.Errorf("nobody knows the condition %s", s.If)
		}
		if !runs {
			continue
		}
		out, err := r.step(t, s, artifacts)
		printed += out
		if failed == nil {
			failed = err
		}
	}
	return printed, failed
}

func (r runner) step(t *testing.T, s step, artifacts map[string]string) (printed string, err error) {
	t.Helper()
	ours, isOurs := strings.CutPrefix(s.Uses, "statecrypt/terraform-provider-statecrypt/actions/")
	uses, _, _ := strings.Cut(s.Uses, "@")
	switch {
	case s.Run != "":
		return r.script(t, s.Run, r.variables(t, s.Env)...)
	case isOurs:
		name, version, _ := strings.Cut(ours, "@v")
		if version == "" {
			t.Errorf("%s has no version", s.Uses)
		}
		with := maps.Clone(s.With)
		for input, value := range with {
			with[input] = expand(t, value, r.secrets)
		}
		return r.action(t, name, with)
	case uses == "actions/upload-artifact":
		if text, err := os.ReadFile(r.file(s.With["path"])); err == nil || s.With["if-no-files-found"] != "ignore" {
			artifacts[s.With["name"]] = string(text)
		}
	case uses == "actions/download-artifact":
		write(t, r.file("tfplan"), artifacts[s.With["name"]])
	case uses != "actions/checkout" && uses != "hashicorp/setup-terraform":
		t.Errorf("nobody knows %s", s.Uses)
	}
	return "", nil
}

// variables are those that a workflow, a job or a step sets.
func (r runner) variables(t *testing.T, env map[string]string) (environ []string) {
	t.Helper()
	for name, value := range env {
		environ = append(environ, name+"="+expand(t, value, r.secrets))
	}
	return environ
}

// checkPipeline is about a pipeline that is done.
func checkPipeline(t *testing.T, r runner, stored, printed string) {
	t.Helper()
	if !strings.HasPrefix(stored, `{"`) || strings.Contains(stored, canary) {
		t.Errorf("this is stored: %.60q", stored)
	}
	if strings.Contains(printed, "AGE-SECRET") || strings.Contains(printed, canary+" of an output") {
		t.Errorf("this is printed: %s", printed)
	}
	if state := read(t, r.file("terraform.tfstate")); !strings.Contains(state, canary+" of a resource") {
		t.Errorf("the plan was not applied: %s", state)
	}
	if _, err := os.Stat(r.file("tfplan")); err == nil {
		t.Error("the plan is still there")
	}
	sealed := write(t, r.file("stored"), stored)
	_, recipient := identity(t, "x25519.key")
	recipients := strings.Replace(read(t, pipelines+"plans.hcl"), "team.txt", write(t, r.file("one.txt"), recipient), 1)
	if got := statecrypt(t, recipients, "", "decrypt", "-plan", sealed); got.code == 0 || got.stdout != "" {
		t.Errorf("the job that plans opens it: %+v", got)
	}
	r.checkLeft(t)
}

// The pipeline of GitLab, likewise.
func TestGitLabPipeline(t *testing.T) {
	t.Parallel()
	r := newRunner(t, filepath.Dir(built(t)))
	var pipeline struct {
		Include []struct {
			Remote string
			Inputs map[string]string
		}
		Plan, Apply struct {
			Script      []yaml.Node
			AfterScript []string `yaml:"after_script"`
			Artifacts   struct{ Paths []string }
			Environment string
			Needs       []string
		}
	}
	decode(t, read(t, pipelines+"gitlab.yml"), &pipeline)
	if len(pipeline.Include) != 1 || !strings.HasSuffix(pipeline.Include[0].Remote, "/actions/gitlab.yml") ||
		pipeline.Apply.Environment == "" || pipeline.Plan.Environment != "" || !slices.Equal(pipeline.Apply.Needs, []string{"plan"}) {
		t.Fatalf("got %+v", pipeline)
	}
	scripts := included(t, pipeline.Include[0].Inputs)
	lines := func(script []yaml.Node) string { return scriptOf(t, script, scripts) }
	printed := r.must(t, lines(pipeline.Plan.Script))
	stored := read(t, r.file(pipeline.Plan.Artifacts.Paths[0]))
	secret := "STATECRYPT_IDENTITY=" + privateKey(t, "x25519.key")
	if out, err := r.script(t, lines(pipeline.Apply.Script)); err == nil || !strings.Contains(out, "an identity is required") {
		t.Errorf("without an identity: %v, %s", err, out)
	}
	after := strings.Join(pipeline.Apply.AfterScript, "\n") // which GitLab runs in any case
	failed, err := r.failing(t).script(t, lines(pipeline.Apply.Script), secret)
	r.must(t, after)
	r.checkFailed(t, err, r.file("tfplan"))
	write(t, r.file("tfplan"), stored)
	printed += failed + r.must(t, lines(pipeline.Apply.Script), secret)
	r.must(t, after)
	checkPipeline(t, r, stored, printed)
}

// scriptOf is what a job of GitLab runs, which refers to our scripts.
func scriptOf(t *testing.T, script []yaml.Node, scripts map[string][]string) string {
	t.Helper()
	var all []string
	for _, line := range script {
		if line.Tag != "!reference" {
			all = append(all, line.Value)
			continue
		}
		if line.Content[0].Value != ".statecrypt" || len(scripts[line.Content[1].Value]) == 0 {
			t.Fatalf("line %d refers to nothing", line.Line)
		}
		all = append(all, scripts[line.Content[1].Value]...)
	}
	return strings.Join(all, "\n")
}

// included has the scripts that GitLab makes of our file with these inputs.
func included(t *testing.T, inputs map[string]string) (scripts map[string][]string) {
	t.Helper()
	text := read(t, actions+"gitlab.yml")
	var header struct {
		Spec struct {
			Inputs map[string]struct{ Default *string }
		}
	}
	before, after, _ := strings.Cut(text, "\n---\n")
	if err := yaml.Unmarshal([]byte(before), &header); err != nil {
		t.Fatal(err)
	}
	for input := range inputs {
		if _, ok := header.Spec.Inputs[input]; !ok {
			t.Errorf("there is no input %s", input)
		}
	}
	for input, declared := range header.Spec.Inputs {
		value, given := inputs[input]
		if !given && declared.Default == nil {
			t.Errorf("the input %s is required", input)
		} else if !given {
			value = *declared.Default
		}
		after = strings.ReplaceAll(after, "$[[ inputs."+input+" ]]", value)
	}
	var file struct {
		Statecrypt map[string][]string `yaml:".statecrypt"`
	}
	decode(t, after, &file)
	if strings.Contains(after, "$[[") || slices.Sorted(maps.Keys(file.Statecrypt))[0] != "decrypt" {
		t.Errorf("got %s", after)
	}
	return file.Statecrypt
}

// What GitLab runs is the script that GitHub runs.
func TestOneScriptForPipelines(t *testing.T) {
	t.Parallel()
	script := read(t, actions+"statecrypt.sh")
	for name, lines := range included(t, map[string]string{"version": "1"}) {
		_, after, _ := strings.Cut(lines[1], "<<'SCRIPT'\n")
		if body, ok := strings.CutSuffix(after, "SCRIPT\n"); !ok || body != script {
			t.Errorf("%s is another script than statecrypt.sh:\n%s", name, after)
		}
	}
}

// The steps of Atlantis, in whose environment PLANFILE names the plan. It is gone from
// where it was opened, whether or not it can be applied, and the exit code says which.
func TestAtlantisPipeline(t *testing.T) {
	t.Parallel()
	r := newRunner(t, filepath.Dir(built(t)))
	var config struct {
		Workflows map[string]struct {
			Plan, Apply struct{ Steps []yaml.Node }
		}
	}
	decode(t, read(t, pipelines+"atlantis.yaml"), &config)
	_, recipient := identity(t, "x25519.key")
	write(t, r.file("team.txt"), recipient+"\n")
	for _, name := range []string{"plans.hcl", "open.hcl"} {
		write(t, r.file("etc-"+name), strings.Replace(read(t, pipelines+name), "team.txt", r.file("team.txt"), 1))
	}
	// Atlantis withholds nothing from its steps.
	plan, opened := r.file("default.tfplan"), r.file("default.tfplan.open")
	r.environ = append(slices.Clone(r.environ), "PLANFILE="+plan, "TF_VAR_plan_identity="+privateKey(t, "x25519.key"), "TF_ENCRYPTION=",
		r.environ[len(r.environ)-1]) // PATH stays the last
	steps := config.Workflows["encrypted"]
	printed, err := r.atlantis(t, steps.Plan.Steps)
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	stored := read(t, plan)

	// A plan that was left where this one is opened is not applied in its place.
	r.must(t, "terraform plan -input=false -out="+opened)
	if out, err := r.atlantis(t, steps.Apply.Steps, "TF_VAR_plan_identity="); err == nil {
		t.Errorf("another plan is applied: %s", out)
	}
	if _, err := os.Stat(r.file("terraform.tfstate")); err == nil {
		t.Error("a plan is applied that was not opened")
	}
	failed, err := r.failing(t).atlantis(t, steps.Apply.Steps)
	r.checkFailed(t, err, opened)
	if read(t, plan) != stored {
		t.Error("after a failure, there is no plan to look at")
	}
	applied, err := r.atlantis(t, steps.Apply.Steps)
	if err != nil {
		t.Fatalf("%v\n%s", err, applied)
	}
	for _, path := range []string{plan, opened} { // Atlantis offers to apply what it finds
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is still there", path)
		}
	}
	for _, name := range []string{"etc-plans.hcl", "etc-open.hcl"} {
		if err := os.Remove(r.file(name)); err != nil {
			t.Fatal(err)
		}
	}
	checkPipeline(t, r, stored, printed+failed+applied)
}

// atlantis runs each step in a shell of its own, which goes on after an error unless the
// step says otherwise, until one fails.
func (r runner) atlantis(t *testing.T, steps []yaml.Node, environ ...string) (printed string, failed error) {
	t.Helper()
	for _, s := range steps {
		var script string
		switch {
		case s.Value == "init":
			script = "terraform init -input=false"
		case s.Value == "plan":
			script = `terraform plan -input=false -out="$PLANFILE"`
		case s.Kind == yaml.MappingNode && s.Content[0].Value == "env":
			var set struct{ Env struct{ Name, Value string } }
			if err := s.Decode(&set); err != nil {
				t.Fatal(err)
			}
			environ = append(environ, set.Env.Name+"="+set.Env.Value)
			continue
		case s.Kind == yaml.MappingNode && s.Content[0].Value == "run":
			script = strings.ReplaceAll(s.Content[1].Value, "/etc/atlantis/", r.file("etc-"))
		default:
			t.Fatalf("line %d: %q", s.Line, s.Value)
		}
		out, err := r.shell(t, "-c", script, environ...)
		printed += out
		if err != nil {
			return printed, err
		}
	}
	return printed, nil
}

// The command is downloaded if it is not there, and not run if its archive is not the
// one that it should be.
func TestPipelineInstalls(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	if _, err := exec.LookPath(name); err == nil {
		t.Skip("there is a statecrypt in PATH")
	}
	// The command in the archive is a script that calls the one under test.
	script := "#!/bin/sh\necho installed >>'" + r.file("log") + "'\nexec '" + built(t) + "' \"$@\"\n"
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	packed := tar.NewWriter(zipped)
	if err := packed.WriteHeader(&tar.Header{Name: "statecrypt", Mode: 0o755, Size: int64(len(script))}); err != nil {
		t.Fatal(err)
	}
	if _, err := packed.Write([]byte(script)); err != nil {
		t.Fatal(err)
	}
	if packed.Close() != nil || zipped.Close() != nil {
		t.Fatal("the archive cannot be written")
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(archive.Bytes()))
	path := fmt.Sprintf("/v0.1.0/statecrypt_0.1.0_%s_%s.tar.gz", runtime.GOOS, runtime.GOARCH)
	served := map[string]string{path: archive.String(), path + ".sha256": sum + "  statecrypt.tar.gz\n",
		strings.ReplaceAll(path, "0.1.0", "0.3.0"): archive.String()}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text, ok := served[r.URL.Path]; ok {
			_, _ = w.Write([]byte(text))
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	r.releases(t, server.URL)
	r.must(t, "terraform plan -out=tfplan")
	plaintext := read(t, r.file("tfplan"))
	for row, c := range map[string]struct {
		with map[string]string
		want string // "" if it works
	}{
		"a checksum that is another": {map[string]string{"version": "v0.1.0", "sha256": strings.Repeat("0", 64)},
			"does not have the checksum 000"},
		"a checksum that is none": {map[string]string{"version": "v0.1.0", "sha256": "0"}, "there is no checksum of https://github.com/"},
		"no such version":         {map[string]string{"version": "0.2.0"}, ""},
		"no such checksum":        {map[string]string{"version": "0.3.0"}, "there is no checksum of https://github.com/"},
		"no version":              {map[string]string{}, "the version of statecrypt to install is required"},
	} {
		c.with["recipients"] = "team.txt"
		if out, err := r.action(t, "encrypt-plan", c.with); err == nil || !strings.Contains(out, c.want) {
			t.Errorf("%s: %v, %s", row, err, out)
		}
		if _, err := os.Stat(r.file("log")); err == nil || read(t, r.file("tfplan")) != plaintext {
			t.Errorf("%s: it ran", row)
		}
	}
	for row, c := range map[string]struct {
		lacks   []string
		environ string
		want    string
	}{
		"no program for checksums": {lacks: []string{"sha256sum", "shasum"}, want: "sha256sum or shasum is required"},
		"another place":            {environ: "RELEASES=" + server.URL + "/evil"},
		"options of tar":           {environ: "TAR_OPTIONS=--to-command=" + write(t, r.file("evil"), "evil")},
		"options of curl":          {environ: "CURL_HOME=/evil"},
		"options of Perl":          {lacks: []string{"sha256sum"}, environ: "PERL5OPT=-Mevil"},
	} {
		write(t, r.file("tfplan"), plaintext)
		job := r.lacking(t, c.lacks...)
		if c.environ != "" {
			job.environ = append([]string{c.environ}, job.environ...)
		}
		out, err := job.action(t, "encrypt-plan", map[string]string{"version": "v0.1.0", "recipients": "team.txt"})
		switch {
		case c.want != "" && (err == nil || !strings.Contains(out, c.want) || read(t, r.file("tfplan")) != plaintext):
			t.Errorf("%s: %v, %s", row, err, out)
		case c.want == "" && (err != nil || read(t, r.file("tfplan")) == plaintext || strings.Contains(read(t, r.file("fetched")), "evil")):
			t.Errorf("%s: %v, %s", row, err, out)
		}
		_ = os.Remove(r.file("log"))
	}
	for _, with := range []map[string]string{{"version": "v0.1.0"}, {"version": "0.1.0", "sha256": sum}} {
		write(t, r.file("tfplan"), plaintext)
		with["recipients"] = "team.txt"
		if out, err := r.action(t, "encrypt-plan", with); err != nil || read(t, r.file("log")) == "" || !strings.HasPrefix(read(t, r.file("tfplan")), `{"`) {
			t.Errorf("%v, %s", err, out)
		}
	}
	_ = os.Remove(r.file("log"))
	if out, err := r.action(t, "install", map[string]string{"version": "v0.1.0"}); err != nil {
		t.Fatalf("%v, %s", err, out)
	}
	into := strings.TrimSpace(read(t, r.secrets["runner.temp"]+"/path")) // which GitHub puts into PATH
	if out := r.must(t, "'"+into+"/statecrypt' version"); !strings.Contains(out, "statecrypt") || read(t, r.file("log")) == "" {
		t.Errorf("what is installed prints %s", out)
	}
	if out, err := r.action(t, "install", map[string]string{"version": "v0.3.0", "sha256": strings.Repeat("0", 64)}); err == nil {
		t.Errorf("another archive is installed: %s", out)
	}
	r.checkLeft(t)
}

// releases has a curl that finds releases on another server, and writes down what it is
// asked for and told.
func (r *runner) releases(t *testing.T, server string) {
	t.Helper()
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip(err)
	}
	r.program(t, "curl", `for url; do :; done
{ echo "$url"; env; } >>'`+r.file("fetched")+`'
exec '`+curl+`' -fsSL --noproxy '*' "`+server+`${url#https://github.com/statecrypt/terraform-provider-statecrypt/releases/download}"`)
}

// lacking has all programs in PATH but these.
func (r runner) lacking(t *testing.T, names ...string) runner {
	t.Helper()
	if len(names) == 0 {
		return r
	}
	dir := t.TempDir()
	last := len(r.environ) - 1
	for _, folder := range filepath.SplitList(strings.TrimPrefix(r.environ[last], "PATH=")) {
		entries, err := os.ReadDir(folder)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if !slices.Contains(names, e.Name()) {
				_ = os.Symlink(filepath.Join(folder, e.Name()), filepath.Join(dir, e.Name())) // the first of a name
			}
		}
	}
	r.environ = append(slices.Clone(r.environ[:last]), "PATH="+dir)
	return r
}

// Functions that a job exports take the place of no command in the script, and what it loads
// into programs is gone.
func TestPipelineRunsNoFunctions(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	r := newRunner(t, "")
	shell := t.TempDir()
	r.sh = filepath.Join(shell, "sh") // which then does as sh
	if err := os.Symlink(bash, r.sh); err != nil {
		t.Fatal(err)
	}
	reserved := regexp.MustCompile(`^(if|then|elif|else|fi|for|in|do|done|case|esac|set|unset|trap|exit|exec)$`)
	evil := []string{"LD_PRELOAD=", "LD_LIBRARY_PATH=/evil", "LD_AUDIT="}
	for _, word := range append(regexp.MustCompile(`\b[a-z]\w*`).FindAllString(read(t, actions+"statecrypt.sh"), -1), "[") {
		if reserved.MatchString(word) { // with which sh does not begin
			continue
		}
		evil = append(evil, "BASH_FUNC_"+word+"%%=() { builtin echo "+word+" >>'"+r.file("evil")+"'; }")
	}
	write(t, r.file("evil"), "")
	write(t, r.file("tfplan"), "a plan")
	r.program(t, name, `env >'`+r.file("env")+`'`)
	for _, c := range []struct {
		action string
		with   map[string]string
		lacks  []string
	}{
		{"encrypt-plan", map[string]string{"recipients": "team.txt"}, nil},
		{"decrypt-plan", map[string]string{"identity": privateKey(t, "x25519.key")}, nil},
		{"encrypt-plan", map[string]string{"recipients": "team.txt", "version": "v0.1.0"}, []string{name}},
		{"encrypt-plan", map[string]string{"recipients": "team.txt", "version": "v0.1.0"}, []string{name, "curl", "sha256sum"}},
	} {
		_ = os.Remove(r.file("env"))
		job := r.lacking(t, c.lacks...)
		if c.lacks != nil {
			job.program(t, "env", `echo nothing is fetched >&2; exit 1`)
		}
		path := strings.Replace(job.environ[len(job.environ)-1], "PATH=", "PATH="+shell+":", 1)
		job.environ = append(slices.Clone(job.environ), append(slices.Clone(evil), path)...)
		out, err := job.action(t, c.action, c.with)
		if ran := read(t, r.file("evil")); ran != "" {
			t.Errorf("%s without %q: these run: %q", c.action, c.lacks, ran)
		}
		if c.lacks != nil {
			if err == nil || !strings.Contains(out, "nothing is fetched") {
				t.Errorf("%s without %q: %v, %s", c.action, c.lacks, err, out)
			}
		} else if env, e := os.ReadFile(r.file("env")); errors.Join(err, e) != nil || strings.Contains(string(env), "LD_") {
			t.Errorf("%s: %v, %s, and the command gets %s", c.action, errors.Join(err, e), out, env)
		}
	}
}

// What bash takes from variables of the job, where it is sh, shows no key and runs nothing.
func TestPipelineIsNotTraced(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	r := newRunner(t, "")
	r.program(t, name, "exit 0")
	shell := t.TempDir()
	if err := os.Symlink(bash, filepath.Join(shell, "sh")); err != nil {
		t.Fatal(err)
	}
	write(t, r.file("evil"), "")
	evil := write(t, r.file("evil.sh"), "echo x >>'"+r.file("evil")+"'\n")
	path := strings.Replace(r.environ[len(r.environ)-1], "PATH=", "PATH="+shell+":", 1)
	r.environ = append(slices.Clone(r.environ), "SHELLOPTS=xtrace", "BASHOPTS=extdebug:expand_aliases", "BASH_ENV="+evil, "ENV="+evil,
		"PS4=$(. '"+evil+"')+ ", "BASH_XTRACEFD=1", "EXECIGNORE=*/"+name, // not in effect for root: PS4
		"BASH_FUNC_sh%%=() { . '"+evil+"'; }", "BASH_FUNC_echo%%=() { . '"+evil+"'; }", path)
	check := func(what, out string, err error) {
		t.Helper()
		if err != nil || strings.Contains(out, "AGE-SECRET") || strings.Contains(out, "+ ") {
			t.Errorf("%s: %v, and this is printed: %s", what, err, out)
		}
		if read(t, r.file("evil")) != "" {
			t.Errorf("%s: a variable chooses what runs", what)
		}
	}
	key := privateKey(t, "x25519.key")
	for action, with := range map[string]map[string]string{
		"decrypt-plan": {"identity": key}, "encrypt-plan": {"recipients": "team.txt"}, "install": {"version": "v0.1.0"},
	} {
		out, err := r.action(t, action, with)
		check(action, out, err)
	}
	r.sh = filepath.Join(shell, "sh")
	script, err := filepath.Abs(actions + "statecrypt.sh")
	if err != nil {
		t.Fatal(err)
	}
	// Whoever runs the script alone chooses the shell, and still sees no key.
	if out, _ := r.run(t, []string{r.sh, script, "decrypt"}, "IDENTITY="+key, "PLAN=tfplan"); strings.Contains(out, "AGE-SECRET") {
		t.Errorf("the script shows the key: %s", out)
	}
	write(t, r.file("evil"), "")
	if r.sh, err = exec.LookPath("dash"); err != nil { // the shell of the job is another one, and up to the job
		return
	}
	lines := included(t, map[string]string{"version": "1"})["decrypt"]
	out, err := r.script(t, strings.Join(lines, "\n"), "STATECRYPT_IDENTITY="+key)
	check("GitLab", out, err)
}

// Settings of one's own take the place of recipients and identities.
func TestPipelineWithSettings(t *testing.T) {
	t.Parallel()
	r := newRunner(t, filepath.Dir(built(t)))
	path := r.environ[len(r.environ)-1]
	another := strings.Replace(newText, canaryKey, strings.Repeat("0", len(canaryKey)), 1)
	r.environ = append(slices.Clone(r.environ), "TF_ENCRYPTION="+another, path)
	write(t, r.file("keys.hcl"), strings.Replace(onlyNew, "state {", "plan {", 1))
	r.must(t, "terraform plan -out=tfplan")
	plaintext := read(t, r.file("tfplan"))
	for _, action := range []string{"encrypt-plan", "decrypt-plan"} {
		if out, err := r.action(t, action, map[string]string{"config": "keys.hcl"}); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if changed := read(t, r.file("tfplan")) != plaintext; changed != (action == "encrypt-plan") {
			t.Errorf("%s: changed is %t", action, changed)
		}
		if sealed := read(t, r.file("tfplan")); action == "encrypt-plan" {
			if got := statecrypt(t, strings.Replace(onlyNew, "state {", "plan {", 1), sealed, "decrypt", "-plan"); got.stdout != plaintext {
				t.Errorf("the settings alone do not open what they sealed: %+v", got)
			}
		}
	}
	for _, c := range [][2]string{{"encrypt-plan", "a file with recipients is required"}, {"decrypt-plan", "an identity is required"}} {
		if out, err := r.action(t, c[0], map[string]string{}); err == nil || !strings.Contains(out, c[1]) {
			t.Errorf("%s: %v, %s", c[0], err, out)
		}
	}
}

// A job that is cancelled leaves no key behind.
func TestPipelineIsCancelled(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	r.program(t, name, `kill -TERM "$PPID"`)
	if out, err := r.action(t, "decrypt-plan", map[string]string{"identity": privateKey(t, "x25519.key")}); err == nil {
		t.Errorf("it goes on: %s", out)
	}
	r.checkLeft(t)
}

package wrap_test

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// attempt is a way to get a state past the encryption. Files and words may name
// ROOT, the folder of the whole scene, and DIRECT, a server without encryption.
type attempt struct {
	args    []string // of the CLI, after -chdir
	chdir   string   // the module "mm" in ROOT if there is none
	environ []string
	files   map[string]string // below ROOT, before wrap is run; "" removes one
	swap    map[string]string // below ROOT, between the look of wrap and that of the CLI
	leave   bool
	moveIn  bool
	ready   bool                                   // the module was applied before
	stored  func(sealed []byte, old string) []byte // what the backend has instead, if it was
	answer  http.HandlerFunc                       // of the backend to whoever reads
	pins    states.Pins
	right   bool // it is none: the run succeeds, and its state is encrypted
	left    bool // a file with a state was there before, and stays
}

// attempts is the table of all that was ever tried.
func attempts() map[string]attempt {
	const (
		localPlan  = "l.tfplan" // made in another module, whose backend is local
		directPlan = "d.tfplan" // made with the same module, and the address of a backend in its block
	)
	apply, plain := []string{"apply", "-auto-approve"}, sensitive(`backend "local" {}`)
	direct := sensitive(`backend "http" { address = "DIRECT/direct" }`)
	cli := func(words ...string) []string { return words }
	all := map[string]attempt{
		"nothing":            {args: apply, right: true},
		"nothing, again":     {args: cli("plan", "-detailed-exitcode"), ready: true, right: true},
		"nothing, by a plan": {args: cli("apply", "ours.tfplan"), right: true},
		"nothing, with variables": {
			args: cli("apply"), environ: []string{"TF_CLI_ARGS=-no-color", "TF_CLI_ARGS_apply=-auto-approve"}, right: true,
		},
		"no subcommand":               {args: cli("", "apply", localPlan)},
		"no subcommand, a variable":   {environ: []string{"TF_CLI_ARGS_=apply " + localPlan}},
		"all in a variable":           {environ: []string{"TF_CLI_ARGS=apply " + localPlan}},
		"a subcommand with a space":   {args: cli("apply ", localPlan)},
		"two words in one":            {args: cli("state mv", "-state-out=x", "a", "b")},
		"a plan of another module":    {args: cli("apply", localPlan)},
		"with a flag before":          {args: cli("apply", "-auto-approve", localPlan)},
		"with a flag's value before":  {args: cli("apply", "-var", "text=x", localPlan)},
		"with a bool's value before":  {args: cli("apply", "-input", "false", localPlan)},
		"after two dashes":            {args: cli("apply", "--", localPlan)},
		"a plan with an address":      {args: cli("apply", directPlan)},
		"by its absolute path":        {args: cli("apply", "ROOT/mm/"+localPlan)},
		"called -":                    {args: cli("apply", "-"), files: map[string]string{"mm/-": "LOCALPLAN"}},
		"by a link":                   {args: cli("apply", "link/../p.tfplan")},
		"by /proc":                    {args: cli("apply", "/proc/self/cwd/"+localPlan)},
		"by the root of /proc":        {args: cli("apply", "/proc/self/root/ROOT/mm/"+localPlan)},
		"by destroy":                  {args: cli("destroy", localPlan)},
		"a plan as a variable's file": {args: cli("apply", "-var-file", localPlan, localPlan)},
		"standard input":              {args: cli("apply", "/dev/stdin")},
		"a cloud plan":                {args: cli("apply", "c.tfplan"), files: map[string]string{"mm/c.tfplan": `{"remote_plan_format":1,"run_id":"run-1","hostname":"h"}`}},

		"state":                {args: cli("apply", "-auto-approve", "-state=x")},
		"state, false":         {args: cli("apply", "-auto-approve", "-state=false")},
		"state-out":            {args: cli("apply", "-auto-approve", "-state-out=x")},
		"state, two words":     {args: cli("apply", "-auto-approve", "-state", "x")},
		"state, two dashes":    {args: cli("apply", "-auto-approve", "--state=x")},
		"state, upper case":    {args: cli("apply", "-auto-approve", "-STATE=x")},
		"backup":               {args: cli("apply", "-auto-approve", "-backup=x"), ready: true},
		"backup of a removal":  {args: cli("state", "rm", "-backup=x", "terraform_data.x"), ready: true},
		"moved to a file":      {args: cli("state", "mv", "-state-out=x", "terraform_data.x", "terraform_data.y"), ready: true},
		"moved to false":       {args: cli("state", "mv", "-state-out=false", "terraform_data.x", "terraform_data.y"), ready: true},
		"backup-out":           {args: cli("state", "mv", "-backup-out=x", "terraform_data.x", "terraform_data.y"), ready: true},
		"moved in the backend": {args: cli("state", "mv", "terraform_data.x", "terraform_data.y"), ready: true, right: true},
		"removed":              {args: cli("state", "rm", "terraform_data.x"), ready: true, right: true},
		"tainted":              {args: cli("taint", "terraform_data.x"), ready: true, right: true},
		"refreshed":            {args: cli("refresh"), ready: true, right: true},
		"a state of another module": {
			args: cli("state", "push", "ROOT/local/terraform.tfstate"), ready: true, files: map[string]string{"local/terraform.tfstate": state},
		},
		"an import's state":  {args: cli("import", "-state-out=x", "terraform_data.z", "1")},
		"an import's module": {args: cli("import", "-config=ROOT/local", "terraform_data.x", "1")},
		"imported": {
			args: cli("import", "terraform_data.z", "1"), ready: true, right: true, files: map[string]string{"mm/z.tf": `resource "terraform_data" "z" {}`},
		},
		"a workspace":                {args: cli("workspace", "new", "w")},
		"a workspace of a state":     {args: cli("workspace", "new", "-state=ROOT/local/x", "w")},
		"a workspace, of a variable": {args: apply, environ: []string{"TF_WORKSPACE=w"}},
		"a workspace, of a file":     {args: apply, files: map[string]string{"mm/.terraform/environment": "w"}, right: true},
		"an old name of a workspace": {args: cli("env", "new", "w")},
		"tests": {
			args: cli("test"), files: map[string]string{"mm/tests/a.tftest.hcl": "run \"a\" {\nbackend \"local\" {}\n}\n"},
		},
		"migrate": {args: cli("state", "migrate"), ready: true},
		"a migration to come": {
			args: apply, ready: true, right: true, files: map[string]string{"mm/x.tfmigrate.hcl": "from {\nbackend \"local\" {}\n}\n"},
		},
		"a query, with a backend": {
			args: cli("query", "-generate-config-out=x.tf"), ready: true,
			files: map[string]string{"mm/x.tfquery.hcl": "terraform {\nbackend \"local\" {}\n}\n"},
		},
		"another reader of arguments": {
			args: cli("apply", "-input=false", "ours.tfplan"), environ: []string{"TOFU_EXPERIMENTAL_CLI_ENABLED=false"}, right: true,
		},
		"the server of a subcommand":  {args: cli("rpcapi")},
		"a flag nobody knows":         {args: cli("apply", "-auto-approve", "-state-file=x")},
		"generated configuration":     {args: cli("plan", "-generate-config-out=x.tf"), right: true},
		"a plan that is not settled":  {args: cli("plan", "-out=new.tfplan"), right: true},
		"help, and a plan":            {args: cli("apply", "-help", localPlan), right: true},
		"help, false, and a plan":     {args: cli("apply", "-help=false", localPlan)},
		"version, and a plan":         {args: cli("apply", "-version", localPlan)},
		"version, before a plan":      {args: cli("-version", "apply", localPlan)},
		"the state of a console":      {args: cli("console", "-state=ROOT/local/x")},
		"the words of a shell script": {args: cli("apply", "-auto-approve", ";", "terraform", "apply")},

		"init, an address":            {args: cli("init", "-backend-config=address=DIRECT/direct"), ready: true},
		"init, an address, two words": {args: cli("init", "-backend-config", "address=DIRECT/direct"), ready: true},
		"init, a file":                {args: cli("init", "-backend-config=x.tfbackend"), files: map[string]string{"mm/x.tfbackend": `address = "DIRECT/direct"`}, ready: true},
		"init, false, migrating": {
			args: cli("init", "-backend-config=false", "-migrate-state", "-force-copy"), ready: true, files: map[string]string{"mm/main.tf": plain},
		},
		"init, migrating": {
			args: cli("init", "-migrate-state", "-force-copy"), ready: true, files: map[string]string{"mm/main.tf": plain},
		},
		"init, copying": {args: cli("init", "-force-copy"), ready: true, files: map[string]string{"mm/main.tf": plain}},
		"init, migrating directly": {
			args: cli("init", "-migrate-state", "-force-copy"), ready: true, files: map[string]string{"mm/main.tf": direct},
		},
		"init, reconfiguring": {args: cli("init", "-reconfigure"), ready: true, files: map[string]string{"mm/main.tf": direct}},
		"init, from a module": {args: cli("init", "-from-module=ROOT/local"), files: map[string]string{"mm/main.tf": ""}},
		"init, a provider's state": {
			args: cli("init", "-input=false", "-enable-pluggable-state-storage-experiment", "-state-provider-lock-file=.terraform.lock.hcl"),
		},
		"a provider's state, a variable": {
			args: cli("init"), environ: []string{"TF_ENABLE_PLUGGABLE_STATE_STORAGE=1"}, files: map[string]string{"mm/main.tf": sensitive(`state_store "x" { }`)},
		},
		"init, no backend": { // which looks at no state
			args: cli("init", "-backend=false"), ready: true, right: true, files: map[string]string{"mm/main.tf": plain},
		},
		"init, with a backend in the end": {
			args: cli("init", "-backend=false", "-backend=true"), ready: true, files: map[string]string{"mm/main.tf": plain},
		},
		"init, in a variable": {
			args: cli("init"), environ: []string{"TF_CLI_ARGS_init=-migrate-state -force-copy"}, ready: true,
			files: map[string]string{"mm/override.tf": "terraform {\nbackend \"local\" {}\n}\n"},
		},
		"init, of a local state": {
			args: cli("init", "-migrate-state", "-force-copy"), left: true,
			files: map[string]string{"mm/main.tf": direct, "mm/terraform.tfstate": "OLD"},
		},
		"init, encrypting": {args: cli("init"), moveIn: true, left: true, right: true, files: map[string]string{"mm/terraform.tfstate": "OLD"}},
		"init, encrypting elsewhere": {
			args: cli("init"), moveIn: true, left: true, files: map[string]string{"mm/main.tf": direct, "mm/terraform.tfstate": "OLD"},
		},
		"a local state":            {args: apply, left: true, files: map[string]string{"mm/terraform.tfstate": "OLD"}},
		"a local state, by a plan": {args: cli("apply", "ours.tfplan"), left: true, files: map[string]string{"mm/terraform.tfstate": "OLD"}},
		"a local state, destroyed": {args: cli("destroy", "-auto-approve"), left: true, files: map[string]string{"mm/terraform.tfstate": "OLD"}},
		"a local state, and one there": {
			args: apply, left: true, ready: true, right: true, files: map[string]string{"mm/terraform.tfstate": "OLD"},
		},
		"a record of elsewhere": {
			args:  apply,
			files: map[string]string{"mm/.terraform/terraform.tfstate": `{"version":3,"backend":{"type":"s3","config":{},"hash":0}}`},
		},
		"leaving by apply":  {args: apply, leave: true, files: map[string]string{"mm/main.tf": plain}},
		"leaving by a plan": {args: cli("apply", localPlan), leave: true},

		"a local backend": {args: apply, files: map[string]string{"mm/main.tf": plain}},
		"no backend":      {args: apply, files: map[string]string{"mm/main.tf": sensitive("")}},
		"an address":      {args: apply, files: map[string]string{"mm/main.tf": direct}},
		"a lock address":  {args: apply, files: map[string]string{"mm/main.tf": sensitive(`backend "http" { lock_address = "DIRECT/lock" }`)}},
		"no verification": {args: apply, files: map[string]string{"mm/main.tf": sensitive(`backend "http" { skip_cert_verification = true }`)}},
		"cloud": {
			args: apply, files: map[string]string{"mm/main.tf": sensitive("cloud {\norganization = \"x\"\nworkspaces { name = \"y\" }\n}")},
		},
		"remote": {
			args:  apply,
			files: map[string]string{"mm/main.tf": sensitive("backend \"remote\" {\norganization = \"x\"\nworkspaces { name = \"y\" }\n}")},
		},
		"a state store":                {args: apply, files: map[string]string{"mm/main.tf": sensitive(`state_store "x" { }`)}},
		"an override":                  {args: apply, files: map[string]string{"mm/override.tf": "terraform {\nbackend \"local\" {}\n}\n"}},
		"an override in JSON":          {args: apply, files: map[string]string{"mm/x_override.tf.json": `{"terraform":{"backend":{"local":{}}}}`}},
		"a local record":               {args: apply, files: map[string]string{"mm/.terraform/terraform.tfstate": `{"version":3,"backend":{"type":"local","config":{"path":null},"hash":0}}`}, right: true},
		"our record, changed":          {args: apply, files: map[string]string{"mm/OWN/terraform.tfstate": `{"version":3,"backend":{"type":"local","config":{},"hash":0}}`}, right: true},
		"a data directory that climbs": {args: apply, environ: []string{"TF_DATA_DIR=../local/.terraform"}, right: true},
		"another data directory":       {args: apply, environ: []string{"TF_DATA_DIR=ROOT/local/.terraform"}, right: true},
		"an encryption block":          {args: apply, files: map[string]string{"mm/more.tf": "terraform {\nencryption {}\n}\n"}},

		"exchanged by a local backend": {args: apply, swap: map[string]string{"mm/main.tf": plain}},
		"exchanged by none":            {args: apply, swap: map[string]string{"mm/main.tf": sensitive("")}},
		"exchanged by an address":      {args: apply, swap: map[string]string{"mm/main.tf": direct}},
		"exchanged by an override":     {args: apply, swap: map[string]string{"mm/override.tf": "terraform {\nbackend \"local\" {}\n}\n"}},
		"exchanged with its record": {
			args: apply, swap: map[string]string{
				"mm/main.tf": plain, "mm/.terraform/terraform.tfstate": `{"version":3,"backend":{"type":"local","config":{"path":null},"hash":0}}`,
			},
		},
		"exchanged while init runs":   {args: cli("init"), ready: true, swap: map[string]string{"mm/main.tf": plain}},
		"exchanged for init, address": {args: cli("init"), ready: true, swap: map[string]string{"mm/main.tf": direct}, right: true}, // ours wins
		"exchanged for a removal":     {args: cli("state", "rm", "terraform_data.x"), ready: true, swap: map[string]string{"mm/main.tf": plain}},
		"a plan, exchanged":           {args: cli("apply", "ours.tfplan"), swap: map[string]string{"mm/ours.tfplan": "LOCALPLAN"}, right: true},
		"a folder, exchanged":         {args: apply, swap: map[string]string{"mm/.terraform/environment": "w"}, right: true},

		"an answer cut off":      {args: apply, ready: true, stored: func(sealed []byte, _ string) []byte { return sealed[:len(sealed)/2] }},
		"an answer in plaintext": {args: apply, ready: true, stored: func(_ []byte, old string) []byte { return []byte(old) }},
		"an answer of others":    {args: apply, ready: true, stored: func([]byte, string) []byte { return []byte("<html>") }},
		"an answer relabelled": {
			args: apply, ready: true, stored: func(sealed []byte, _ string) []byte {
				return bytes.Replace(sealed, []byte(`"lineage":"`), []byte(`"lineage":"x`), 1)
			},
		},
		"an answer cut off on the way": {
			args: apply, answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "9999")
				_, _ = io.WriteString(w, `{"version":4,`)
			},
		},
		"an answer exchanged for another": {args: apply, ready: true, pins: states.Pins{Lineage: "that of another state"}},
		"an answer exchanged for an old":  {args: apply, ready: true, pins: states.Pins{Serial: new(int64(1 << 40))}},
		"an answer exchanged for none":    {args: apply, pins: states.Pins{Serial: new(int64)}},
		"an answer with one more": {
			args: apply, ready: true, stored: func(sealed []byte, _ string) []byte { return append(sealed, 'x') },
		},

		"another module by a link":   {args: apply, chdir: "ROOT/link/../mm"},
		"another module":             {args: apply, chdir: "ROOT/local"},
		"our module by a link":       {args: apply, chdir: "ROOT/tomm", right: true},
		"our module by /proc":        {args: apply, chdir: "/proc/self/root/ROOT/mm", right: true},
		"another module twice":       {args: append(cli("-chdir=ROOT/local"), apply...)},
		"another module in a word":   {args: append(cli("apply", "-chdir=ROOT/local"), apply[1:]...)},
		"another module, a variable": {args: apply, environ: []string{"TF_CLI_ARGS=-chdir=ROOT/local"}},
		"an address in a variable": {
			args: apply, environ: []string{"TF_HTTP_ADDRESS=DIRECT/direct", "TF_HTTP_UPDATE_METHOD=PUT"}, right: true,
		},
		"a proxy": {
			args: apply, environ: []string{"HTTPS_PROXY=DIRECT", "https_proxy=DIRECT", "HTTP_PROXY=DIRECT", "ALL_PROXY=DIRECT"}, right: true,
		},
		"settings for every command": {args: apply, environ: []string{"TF_CLI_ARGS=-state=x"}},
		"settings for two commands":  {args: apply, environ: []string{"TF_CLI_ARGS_apply=-lock=false -state-out=x"}},
		"a state in a variable of mv": {
			args: cli("state", "mv", "terraform_data.x", "terraform_data.y"), ready: true, environ: []string{"TF_CLI_ARGS_state_mv=-state-out=x"},
		},
	}
	for name, words := range map[string]string{
		"semicolon": "l.tfplan;", "ampersand": "l.tfplan&", "greater": "l.tfplan >x", "pipe": "l.tfplan|x", "backticks": "`l.tfplan`",
		"dollar": "$(l.tfplan)", "no-break space": "-no-color\u00a0l.tfplan", "vertical tabulator": "-no-color\vl.tfplan",
		"quotes": "'l.tfplan'", "double quotes": `"l.tfplan"`, "backslash": `l\.tfplan`, "a plan": "l.tfplan", "a plan, after flags": "-no-color l.tfplan",
	} {
		all["TF_CLI_ARGS_apply, "+name] = attempt{args: cli("apply"), environ: []string{"TF_CLI_ARGS_apply=" + words}}
	}
	return all
}

// sensitive is a module that does not show what its state holds, and does not hold
// it either.
func sensitive(backend string) string {
	return "terraform {\n" + backend + "\n}\n" + `
variable "text" { sensitive = true }
resource "terraform_data" "x" { input = var.text }
output "text" {
  value     = terraform_data.x.output
  sensitive = true
}
`
}

// scene is what all attempts begin with: folders to copy, and states to restore.
type scene struct {
	cli    string
	root   string
	sealed []byte // the state of the module that was applied
	plans  map[string][]byte
	old    string // a state in plaintext
}

// stranger is a server that stores whatever anyone sends.
type stranger struct {
	mu   sync.Mutex
	seen bytes.Buffer
}

func (s *stranger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = io.Copy(&s.seen, r.Body)
	if r.Method == http.MethodGet {
		w.WriteHeader(http.StatusNotFound)
	}
}

func (s *stranger) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.String()
}

// newScene makes plans and a state with the real CLI.
func newScene(t *testing.T) *scene {
	t.Helper()
	s := newStore(t)
	p := newProject(t, s.environ(), empty)
	p.env = append(p.env, "TF_VAR_text="+secret)
	sc := &scene{cli: p.cli, root: folder(t), plans: map[string][]byte{}}
	bare := func(folder, backend string, args ...string) {
		p.dir = filepath.Join(sc.root, folder)
		write(t, filepath.Join(p.dir, "main.tf"), sensitive(backend))
		for _, args := range [][]string{{"init"}, args} {
			if code, out := p.bare(t, p.cli, s.terraform()[3:], args...); code != 0 {
				t.Fatalf("%q: %d\n%s", args, code, out)
			}
		}
	}
	server := httptest.NewServer(&stranger{})
	t.Cleanup(server.Close)
	bare("local", `backend "local" {}`, "plan", "-out=l.tfplan")
	bare("direct", `backend "http" { address = "`+server.URL+`" }`, "plan", "-out=d.tfplan")
	bare("old", `backend "local" {}`, "apply", "-auto-approve")
	p.dir = filepath.Join(sc.root, "mm")
	write(t, filepath.Join(p.dir, "main.tf"), sensitive(empty))
	p.must(t, "init")
	p.must(t, "plan", "-out=ours.tfplan")
	p.must(t, "apply", "-auto-approve")
	sc.sealed, sc.old = s.stored(), read(t, filepath.Join(sc.root, "old", "terraform.tfstate"))
	for name, folder := range map[string]string{"l.tfplan": "local", "d.tfplan": "direct", "ours.tfplan": "mm"} {
		sc.plans[name] = []byte(read(t, filepath.Join(sc.root, folder, name)))
	}
	return sc
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestAccBypass tries to get a state past the encryption in every way that is
// known. Whatever becomes of the run, nothing holds the secret afterwards, and the
// run fails unless it was right.
//
// Promise: Only encrypted states (more than 100 attempts, on a backend and on a file, and some of them in git)
func TestAccBypass(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	table := attempts()
	if len(table) < 80 {
		t.Fatalf("there are %d attempts only", len(table))
	}
	each := len(table) / testkit.Rounds(len(table))
	for i, name := range slices.Sorted(maps.Keys(table)) {
		a, kinds := table[name], []string{"http", "file"}
		if i%each == 0 { // each of its steps starts many programs
			kinds = append(kinds, "git")
		}
		if i%each == each/2 {
			kinds = append(kinds, "s3")
		}
		if a.answer != nil || testing.Short() { // which only a server gives
			kinds = kinds[:1]
		}
		for _, kind := range kinds {
			t.Run(name+", in "+kind, func(t *testing.T) {
				t.Parallel()
				sc.try(t, a, kind)
			})
		}
	}
}

// try makes an attempt, with the state in a store of a kind.
func (sc *scene) try(t *testing.T, a attempt, kind string) {
	t.Helper()
	s, direct := newStore(t), &stranger{}
	server := httptest.NewServer(direct)
	t.Cleanup(server.Close)
	p := newProject(t, s.environ(), empty)
	root, _ := filepath.EvalSymlinks(p.dir)
	kept := filepath.Join(root, "kept", "net.tfstate")
	var repo *gittest.Repo
	var b *bucket
	switch kind {
	case "file":
		p.store, p.with.Where.Backend = nil, fileBlock(kept)
	case "git":
		repo = newRepository(t, "")
		p.store, p.with.Where.Backend = nil, gitBlock(repo.FileURL())
	case "s3":
		b = newBucket(t)
		b.Keep(stateBucket)
		p.store, p.with.Where.Backend = nil, s3Block(b.block.With("use_lockfile", true))
	}
	fill := strings.NewReplacer("ROOT", root, "DIRECT", server.URL, "OLD", sc.old, "LOCALPLAN", string(sc.plans["l.tfplan"])).Replace
	sc.build(t, root, s, a, fill)
	before := s.stored()
	switch kind {
	case "file":
		write(t, kept, string(before))
	case "git":
		putInto(repo, string(before))
	case "s3":
		if before != nil {
			b.Put(stateBucket, stateKey, before)
		}
	}

	env := append(append(p.env, p.store...), "TF_VAR_text="+secret)
	for _, v := range a.environ {
		env = append(env, fill(v))
	}
	chdir := "ROOT/mm"
	if a.chdir != "" {
		chdir = a.chdir
	}
	command := []string{sc.exchanger(t, root, a, fill), "-chdir=" + strings.ReplaceAll(fill(chdir), "//", "/")}
	for _, word := range a.args {
		command = append(command, fill(word))
	}
	if a.answer != nil {
		s.intercept(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodGet {
				a.answer(w, r)
			}
			return r.Method == http.MethodGet
		})
	}
	out := &lines{}
	code, err := wrap.Run(t.Context(), wrap.Options{
		Keys: states.Keys{State: p.target}, Where: p.with.Where, Command: command, Environ: env,
		Wishes: wrap.Wishes{Leave: a.leave, EncryptExisting: a.moveIn, Pins: a.pins},
		Stdin:  strings.NewReader(""), Stdout: out, Stderr: out,
	})
	if (code == 0) != a.right || (err != nil) && code == 0 {
		t.Errorf("got %d, %v; right: %t\n%s", code, err, a.right, out)
	}
	stored, written := s.stored(), count(s.requests(), "POST") > 0
	switch kind {
	case "file":
		stored = []byte(read(t, kept))
		written = !bytes.Equal(stored, before)
	case "git":
		stored = everything(t, repo)
		written = repo.Git("rev-list", "--count", "main") != "2"
	case "s3":
		stored = bytes.Join(b.Everything(stateBucket), []byte("\n"))
		written = !bytes.Equal(b.Get(stateBucket, stateKey), before)
	}
	leaked := strings.Contains(string(stored), secret) && a.stored == nil || written && !a.right
	if strings.Contains(out.String(), secret) || strings.Contains(direct.String(), secret) || leaked {
		t.Errorf("the secret is out:\n%s\nto a stranger: %s\nstored: %s", out, direct, stored)
	}
	if a.stored != nil {
		_ = os.Remove(kept) // it had the secret before
	}
	sc.search(t, root, a)
}

// build copies what the attempt begins with.
func (sc *scene) build(t *testing.T, root string, s *store, a attempt, fill func(string) string) {
	t.Helper()
	if err := os.Remove(filepath.Join(root, "main.tf")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "mm", "main.tf"), sensitive(empty))
	write(t, filepath.Join(root, "local", "main.tf"), sensitive(`backend "local" {}`))
	write(t, filepath.Join(root, "far", "mm", "main.tf"), sensitive(`backend "local" {}`))
	write(t, filepath.Join(root, "far", "in", "x"), "")
	for name, content := range sc.plans {
		write(t, filepath.Join(root, "mm", name), string(content))
	}
	write(t, filepath.Join(root, "far", "p.tfplan"), string(sc.plans["l.tfplan"]))
	for link, to := range map[string]string{"link": "far/in", "mm/link": "../far/in", "tomm": "mm"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Skip(err)
		}
	}
	if a.ready {
		s.put(bytes.Clone(sc.sealed))
	}
	if a.stored != nil {
		s.put(a.stored(bytes.Clone(sc.sealed), sc.old))
	}
	for name, text := range a.files {
		path := filepath.Join(root, strings.Replace(name, "OWN", own(filepath.Join(root, "mm")), 1))
		write(t, path, fill(text))
		if text == "" {
			_ = os.Remove(path)
		}
	}
}

// exchanger is the CLI, or a program of its name that exchanges files before it runs it.
func (sc *scene) exchanger(t *testing.T, root string, a attempt, fill func(string) string) string {
	t.Helper()
	if len(a.swap) == 0 {
		return sc.cli
	}
	script := "#!/bin/sh\nset -e\ncase $1 in */block) exec '" + sc.cli + "' \"$@\" ;; esac\n" // asked for the hash of the block
	for name, text := range a.swap {
		prepared := filepath.Join(t.TempDir(), filepath.Base(name))
		write(t, prepared, fill(text))
		script += "mkdir -p '" + filepath.Join(root, filepath.Dir(name)) + "'\ncp '" + prepared + "' '" + filepath.Join(root, name) + "'\n"
	}
	path := filepath.Join(t.TempDir(), filepath.Base(sc.cli))
	write(t, path, script+"exec '"+sc.cli+"' \"$@\"\n")
	if err := os.Chmod(path, 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	return path
}

// search looks for the secret in all files, apart from those that had it before.
func (sc *scene) search(t *testing.T, root string, a attempt) {
	t.Helper()
	_ = filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() || strings.HasSuffix(path, ".tfplan") || a.left && path == filepath.Join(root, "mm",
			"terraform.tfstate") {
			return err
		}
		if content, err := os.ReadFile(path); err != nil || bytes.Contains(content, []byte(secret)) {
			t.Errorf("%s holds the secret, or: %v", path, err)
		}
		return nil
	})
}

// A Terraform that someone runs without wrap finds no address, and asks for one.
//
// Promise: Only encrypted states
func TestAccForgotten(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	p := newProject(t, s.environ(), empty)
	p.must(t, "init")
	for _, args := range [][]string{{"init"}, {"apply", "-auto-approve"}} {
		if code, out := p.bare(t, p.cli, p.store, args...); code == 0 {
			t.Errorf("%q: %s", args, out)
		}
	}
	if _, err := os.Stat(filepath.Join(p.dir, "terraform.tfstate")); err == nil || s.stored() != nil {
		t.Errorf("there is a state: %v, %s", err, s.stored())
	}
}

// Plans are sealed when they are made, and opened when they are needed.
//
// Promise: Only encrypted states
func TestAccPlans(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	s := newStore(t)
	p := newProject(t, s.environ(), empty)
	settings := tofuKeys + "plan { method = method.aes_gcm.m }\n"
	p.with.Keys.Plan = wraptest.Settings(t, settings).Plan()
	p.must(t, "init")
	p.must(t, "plan", "-out=../old", "-out=new.tfplan")
	plan := []byte(read(t, filepath.Join(p.dir, "new.tfplan")))
	if bytes.HasPrefix(plan, []byte("PK")) || !bytes.Contains(plan, []byte("encrypted_data")) {
		t.Errorf("the plan is %.100q", plan)
	}
	if out := p.must(t, "show", "new.tfplan"); !strings.Contains(out, "terraform_data.x will be created") {
		t.Errorf("it shows %s", out)
	}
	p.must(t, "apply", "new.tfplan")
	s.checkSealed(t, secret)
	if left, err := filepath.Glob(filepath.Join(temporary, "statecrypt-*")); err != nil || len(left) > 0 {
		t.Errorf("these copies are left: %q, %v", left, err)
	}

	bare := &project{dir: p.dir, env: p.env}
	write(t, filepath.Join(p.dir, "main.tf"), module(""))
	if code, out := bare.bare(t, p.cli, []string{"TF_DATA_DIR=bare"}, "plan", "-out=plain.tfplan"); code != 0 {
		t.Fatal(out)
	}
	write(t, filepath.Join(p.dir, "main.tf"), module(empty))
	for _, args := range [][]string{{"apply", "plain.tfplan"}, {"show", "plain.tfplan"}} {
		if code, err, out := p.wrapped(t, args...); code != 1 || !errors.Is(err, encryption.ErrPlaintext) {
			t.Errorf("%q: %d, %v\n%s", args, code, err, out)
		}
	}
}

// A state that the backend refuses is left encrypted, and pushed from there by another name.
//
// Promise: Only encrypted states
func TestAccErrored(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	p := newProject(t, s.environ(), empty)
	p.must(t, "init")
	s.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusForbidden)
		}
		return r.Method == http.MethodPost
	})
	code, err, out := p.wrapped(t, "apply", "-auto-approve")
	if code != 1 || err != nil {
		t.Errorf("%d, %v\n%s", code, err, out)
	}
	if left := read(t, filepath.Join(p.dir, "errored.tfstate")); strings.Contains(left, secret) {
		t.Errorf("this was left: %s", left)
	}
	code, err, out = p.wrapped(t, "apply", "-auto-approve") // which could not leave its state in that file, and would print it
	if code != 1 || err == nil || out != "" {
		t.Errorf("%d, %v\n%s", code, err, out)
	}
	s.intercept(nil)
	if err := os.Rename(filepath.Join(p.dir, "errored.tfstate"), filepath.Join(p.dir, "looked.at")); err != nil {
		t.Fatal(err)
	}
	p.must(t, "state", "push", "looked.at")
	s.checkSealed(t, secret)
	if out := p.must(t, "output", "-raw", "text"); !strings.HasSuffix(out, secret) {
		t.Errorf("the output is %s", out)
	}
}

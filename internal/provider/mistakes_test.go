package provider

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hcldec"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

const staticBlocks = `  key_provider {
    static {
      name = "k"
      key  = "` + staticKey + `"
    }
  }
  method {
    aes_gcm {
      name = "m"
      keys = "key_provider.static.k"
    }
  }
`

const staticDefault = `  default {
    method = "method.aes_gcm.m"
  }
`

// What users see of the mistakes is in it.
var mistakesFile = filepath.Join("testdata", "mistakes.txt")

// mistake is a configuration that cannot work.
type mistake struct {
	name, provider, body string
	env                  string // a variable
	cli                  bool   // one of those that run on a real CLI as well
}

// What users see of each mistake is in testdata/mistakes.txt: when it is found
// (validate, or plan), at which block, the title, and the text in full.
func TestMistakes(t *testing.T) {
	testkit.OneGoroutine(t)
	isolateGit(t)
	place := newMistakenPlace(t)
	golden := openMistakes(t, "")
	for _, m := range place.mistakes() {
		t.Run(m.name, func(t *testing.T) {
			if name, value, ok := strings.Cut(m.env, "="); ok {
				t.Setenv(name, value)
			}
			e := evaluate(t, m.provider, m.body)
			got := place.stable(mistakesIn(e.stage, e.errors))
			golden.Check(t, m.name, got)
			place.pastes(t, got)
		})
	}
	if n := place.remedies.Load(); n < 10 {
		t.Errorf("%d remedies were found", n)
	}
}

func openMistakes(t *testing.T, group string) *testkit.Golden {
	t.Helper()
	return testkit.OpenGolden(t, mistakesFile, group, "c4n4ry", staticKey, "git-password", "x8Kq-zP2w9LmN3vR7tYb",
		"a passphrase of 16 bytes", "OpenTofu's own passphrase", "s3cret", "throwaway", "correct-horse", "CANARY")
}

// wantMistake compares the errors, and there must be one.
func (e *evaluation) wantMistake(golden *testkit.Golden, name string) {
	e.t.Helper()
	if len(e.errors) == 0 {
		e.t.Error("there is no error")
	}
	golden.Check(e.t, name, placeless(mistakesIn(e.stage, e.errors)))
}

// placeless replaces the folders of tests and the ports of servers.
func placeless(text string) string {
	temporary := regexp.MustCompile(regexp.QuoteMeta(filepath.Join(os.TempDir(), "Test")) + `[^/]*/\d+`)
	here, _ := os.Getwd()
	text = strings.ReplaceAll(temporary.ReplaceAllString(text, "/folder"), here, "/here")
	return regexp.MustCompile(`127\.0\.0\.1:\d\d+`).ReplaceAllString(text, "127.0.0.1:PORT")
}

// pastes puts the blocks that a text shows where they belong: all are blocks of the
// provider, which takes them as they are printed.
func (p *mistakenPlace) pastes(t *testing.T, text string) {
	t.Helper()
	for remedy := range strings.SplitSeq(text, "\n\n") {
		if !strings.HasPrefix(remedy, "  ") || strings.HasPrefix(remedy, "  - ") {
			continue
		}
		p.remedies.Add(1)
		file, problems := hclsyntax.ParseConfig([]byte(remedy), "remedy", hcl.InitialPos)
		if problems.HasErrors() {
			t.Errorf("%v:\n%s", problems, remedy)
			continue
		}
		spec := specification(builtinKinds().providerFields())
		if _, problems = hcldec.Decode(file.Body, spec, anyVariable(hcldec.Variables(file.Body, spec))); problems.HasErrors() {
			t.Errorf("%v:\n%s", problems, remedy)
		}
	}
}

// anyVariable is a scope with a text for each var.NAME.
func anyVariable(used []hcl.Traversal) *hcl.EvalContext {
	values := map[string]cty.Value{}
	for _, v := range used {
		values[v[1].(hcl.TraverseAttr).Name] = cty.StringVal("a value that is long enough")
	}
	return &hcl.EvalContext{Variables: map[string]cty.Value{"var": cty.ObjectVal(values)}}
}

// A real CLI finds the same mistakes at the same time, and prints the same words:
// one of each kind.
func TestAccMistakes(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	place := newMistakenPlace(t)
	want := testkit.ReadGolden(t, mistakesFile)
	for _, m := range place.mistakes() {
		if !m.cli {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(m.body, "ephemeral \"") && !knowsEphemeral() {
				t.Skip("this CLI has no ephemeral values")
			}
			p := newProject(t, map[string]string{"main.tf": configuration(m.provider, m.body)})
			if m.env != "" {
				p.setenv(m.env)
			}
			if got := place.stable(p.firstMistakes()); got != want[m.name] {
				t.Errorf("got\n%s\nwant\n%s", got, want[m.name])
			}
		})
	}
}

// firstMistakes are the errors of validate or, if it finds none, of plan.
func (p *project) firstMistakes() string {
	for _, command := range []string{"validate", "plan"} {
		if out, err := p.command(command, "-json").Output(); err != nil {
			return mistakesIn(command, errorsIn(out))
		}
	}
	return mistakesIn("", nil)
}

func mistakesIn(stage string, errors []shownError) string {
	var found []string
	for _, d := range errors {
		found = append(found, fmt.Sprintf("%s, in %s\n%s\n%s", stage, d.Snippet.Context, d.Summary, strings.TrimSpace(d.Detail)))
	}
	if len(found) == 0 {
		return "no mistake was found"
	}
	slices.Sort(found)
	return strings.Join(slices.Compact(found), "\n\n")
}

// shownError is an error as both CLIs print it in JSON.
type shownError struct {
	Severity, Summary, Detail string
	Snippet                   struct{ Context string }
}

// errorsIn finds the errors in the one document of validate, or in the lines of plan.
func errorsIn(out []byte) []shownError {
	var all []shownError
	var whole struct{ Diagnostics []shownError }
	if json.Unmarshal(out, &whole) == nil && whole.Diagnostics != nil {
		all = whole.Diagnostics
	}
	for line := range bytes.Lines(out) {
		var message struct{ Diagnostic *shownError }
		if json.Unmarshal(line, &message) == nil && message.Diagnostic != nil {
			all = append(all, *message.Diagnostic)
		}
	}
	return slices.DeleteFunc(all, func(d shownError) bool { return d.Severity != "error" })
}

// mistakenPlace is where the mistaken configurations read.
type mistakenPlace struct {
	dir          string
	server       *stateServer
	repo         *gittest.Repo
	commit       string
	git          *gittest.HTTPServer
	replacements *strings.Replacer
	remedies     atomic.Int64 // that were pasted
}

// emptyPlan is an archive that is a plan by its member alone.
func emptyPlan(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	if _, err := z.Create("tfplan"); err != nil || z.Close() != nil {
		t.Fatal("the archive cannot be written")
	}
	return b.Bytes()
}

// kubeconfigWithoutFiles names files of another machine.
const kubeconfigWithoutFiles = `{"apiVersion":"v1","kind":"Config","current-context":"c",
"contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],
"clusters":[{"name":"k","cluster":{"server":"https://127.0.0.1:1","certificate-authority":"/no/such/ca.crt"}}],
"users":[{"name":"u","user":{"token":"t"}}]}`

func newMistakenPlace(t *testing.T) *mistakenPlace {
	t.Helper()
	p := &mistakenPlace{dir: t.TempDir()}
	sops, err := os.ReadFile(filepath.Join("..", "..", "conformance", "cases", "tbg_sops_age", "state.raw"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"sealed": sealed(t, argumentsState), "plain": []byte(argumentsState), "derived": conformance.Get("pbkdf2_sha256_key32_salt1").State(),
		"chained": conformance.Get("pbkdf2_chain_pbkdf2_alias").State(),
		"sops":    sops, "age": []byte("age-encryption.org/v1\n-> X25519 x\n"), "empty": {}, "text": []byte("not a state"),
		"cut": sealed(t, argumentsState)[:100], "json": []byte("{}"),
		"part": []byte(`{"encrypted_data":"AAAA"}`), "future": []byte(`{"version":5}`),
		"plan": emptyPlan(t), "record": []byte(`{"version":3,"backend":{"type":"s3","config":{},"hash":1}}`),
		"lfs": []byte("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"), "page": []byte("<!DOCTYPE html>"),
		"conflict": []byte("{\n<<<<<<< HEAD\n}\n"), "ansible": []byte("$ANSIBLE_VAULT;1.1;AES256\n3132\n"),
		"utf16": []byte("\xff\xfe{\x00}\x00"), "random": []byte("\x8a\x01\xff" + strings.Repeat("\x90", 40)),
		"kubeconfig": []byte(kubeconfigWithoutFiles),
		"team": []byte(`{"meta":{"key_provider.external.team":"eyJleHRlcm5hbF9kYXRhIjp7InN0YXRlY3J5cHRfYWdlX2tleSI6IllXZGwifX0="},` +
			`"encrypted_data":"YWdl","encryption_version":"v0"}`),
		"zip": []byte("PK\x03\x04\x14\x00"), "pulumi": []byte(`{"version":3,"deployment":{}}`), "git-crypt": []byte("\x00GITCRYPT\x00\x8f"),
		"twice": []byte(argumentsState + argumentsState), "log": []byte("Acquiring state lock.\n" + argumentsState),
		"secret": []byte(`{"apiVersion":"v1","kind":"Secret","data":{"tfstate":"H4s"}}`),
		"edited": []byte(`{"version":4,"serial":"1","lineage":"l","outputs":{}}`),
		"array":  []byte("[]"), "hcl": []byte("terraform {\n}\n"), "tfvars": []byte("region = \"eu-west-1\"\n"),
		"lock": []byte(`{"ID":"1","Operation":"OperationTypeApply","Info":"","Who":"a@b","Version":"1.11.4","Created":"","Path":"s"}`),
		"resources": []byte(`{"version":4,"serial":1,"lineage":"l","outputs":{},"resources":[{"mode":"data","type":"aws_caller_identity",` +
			`"name":"me","provider":"p","instances":[{"schema_version":0,"attributes":{"id":"1"}}]}]}`),
		"kubeform": []byte(strings.Repeat("s^!OXxj4Csaj", 5)),
		"manifest": []byte(`{"apiVersion":"modules.kubeform.com/v1alpha1","kind":"VPC","metadata":{"name":"network"},"status":{"state":"s^!OXxj4Csaj"}}`),
		"yaml":     []byte("apiVersion: modules.kubeform.com/v1alpha1\nkind: VPC\nmetadata:\n  name: network\nstatus:\n  state: s^!OXxj4Csaj\n"),
		"bare":     []byte("apiVersion: modules.kubeform.com/v1alpha1\nkind: VPC\nmetadata:\n  name: network\nspec: {}\n"),
		"newer":    []byte(`{"meta":{},"encrypted_data":"AA==","encryption_version":"v1"}`),
	} {
		if err := os.WriteFile(filepath.Join(p.dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.server = serve(t, httptest.NewServer, p.answer)
	p.repo = gittest.NewRepo(t, gittest.RepoOptions{})
	p.commit = p.repo.Commit("refs/heads/main", gittest.File{Path: "s", Data: "{}"},
		gittest.File{Path: "network/terraform.tfstate", Data: "{}"})
	large := p.repo.Commit("refs/heads/large", manyFolders()...)
	p.git = gittest.HTTP(t, p.repo, gittest.HTTPOptions{Username: "ci", Password: "git-password"})
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	p.replacements = strings.NewReplacer(strings.Replace(p.git.Origin, "//", "//ci@", 1), "http://ci@git", here, "/here",
		p.server.URL, "http://server", p.git.URL, "http://git/repository", p.git.Origin, "http://git",
		p.repo.FileURL(), "file:///repository", p.commit, "COMMIT", large, "COMMIT", p.dir, "/states")
	return p
}

// manyFolders are more than git is asked for at once.
func manyFolders() (files []gittest.File) {
	for i := range 6000 {
		files = append(files, gittest.File{Path: fmt.Sprintf("envs/%d/%d/terraform.tfstate", i/100, i%100), Data: fmt.Sprint(i)})
	}
	return append(files, gittest.File{Path: "envs/prod/terraform.tfstate", Data: "{}"})
}

func (p *mistakenPlace) answer(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/private":
		w.WriteHeader(http.StatusUnauthorized)
	case "/forbidden":
		w.WriteHeader(http.StatusForbidden)
	case "/broken":
		w.WriteHeader(http.StatusInternalServerError)
	case "/bad":
		w.WriteHeader(http.StatusBadRequest)
	case "/redirect":
		http.Redirect(w, r, "/login", http.StatusFound)
	case "/login", "/acme/infra/blob/main/s":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<!DOCTYPE html><title>Sign in</title>"))
	default:
		http.NotFound(w, r)
	}
}

// stable replaces what differs from run to run.
func (p *mistakenPlace) stable(text string) string {
	if before, _, twoPrograms := strings.Cut(text, " git said: fatal: "); twoPrograms && strings.Contains(text, "not our ref") {
		text = before // two programs say so, in any order
	}
	return p.replacements.Replace(afterSomeTime.ReplaceAllString(text, "after some time"))
}

// afterSomeTime is in what curl says.
var afterSomeTime = regexp.MustCompile(`after \d+ ms`)

func keyBlock(body string) string { return "key_provider {\n" + body + "\n}\n" }

func methodBlock(body string) string { return "method {\n" + body + "\n}\n" }

func defaultBlock(body string) string { return "default {\n" + body + "\n}\n" }

// mistakes are the rows.
func (p *mistakenPlace) mistakes() []mistake {
	return slices.Concat(p.mistakenFiles(), p.mistakenChoices(), p.mistakenKeys(), p.mistakenText(), p.mistakenSettings(), p.mistakenGit(),
		p.mistakenHTTP(), p.mistakenStores())
}

// in reads a file of the place.
func (p *mistakenPlace) in(name string, more ...string) string {
	return reads("s", append(more, fromFile(p.dir+"/"+name))...)
}

// fromRepo reads from the repository that anyone may read.
func (p *mistakenPlace) fromRepo(ref, path string) string {
	return reads("s", fromGit(p.repo.FileURL(), ref, path))
}

// fromServer reads what the server has.
func (p *mistakenPlace) fromServer(path string) string {
	return reads("s", fromHTTP(p.server.URL+path))
}

func from(kind, arguments string) string { return reads("s", kind+" {\n"+arguments+"\n}") }

func credentials(kind, arguments string) string {
	return settings("credentials {\n" + kind + " {\n" + arguments + "\n}\n}")
}

func credentialsAt(kind, url, rest string) string {
	return credentials(kind, fmt.Sprintf("url = %q\n%s", url, rest))
}

func passphrase(text string) string { return pbkdf2(quote(text)) }

func pbkdf2(passphrase string) string {
	return settings(keyBlock("pbkdf2 {\npassphrase = " + passphrase + "\n}"))
}

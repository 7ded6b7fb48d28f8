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
	isolateGit(t)
	place := newMistakenPlace(t)
	golden := testkit.OpenGolden(t, mistakesFile, "", "c4n4ry", staticKey, "git-password", "x8Kq-zP2w9LmN3vR7tYb",
		"a passphrase of 16 bytes", "OpenTofu's own passphrase")
	for _, m := range place.all() {
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

// all are the rows of all files.
func (p *mistakenPlace) all() []mistake {
	return slices.Concat(p.mistakes(), p.more(), p.later(), p.again(), p.newest(), p.latest())
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
		spec := specification(builtinCatalog().providerFields())
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
	for _, m := range place.all() {
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
	in := func(name string, more ...string) string {
		return reads("s", append([]string{fromFile(filepath.Join(p.dir, name))}, more...)...)
	}
	git := func(ref, path string) string { return reads("s", fromGit(p.repo.FileURL(), ref, path)) }
	remote := reads("s", fromGit(p.git.URL, "main", "s"))
	http := func(path string) string { return reads("s", fromHTTP(p.server.URL+path)) }
	key := keyBlock("static {\nkey = \"" + staticKey + "\"\n}")
	keys := keyBlock("static {\nname = \"new\"\nkey = \"" + staticKey + "\"\n}\nstatic {\nname = \"old\"\nkey = \"" + staticKey + "\"\n}")
	passphrase := func(text string) string {
		return settings(keyBlock("pbkdf2 {\npassphrase = " + quote(text) + "\n}"))
	}
	good := textProvider(staticText)
	aliased := settings(`alias = "states"`, keyBlock("pbkdf2 {\npassphrase = \"a passphrase of 16 bytes\"\n}"))
	credentials := func(kind, url, rest string) string {
		return settings(fmt.Sprintf("credentials {\n%s {\nurl = %q\n%s\n}\n}", kind, url, rest))
	}
	text := func(body string) string { return textProvider(body) }
	return []mistake{
		// What to decrypt with.
		{name: "sops file, only aes_gcm", provider: settings(key), body: in("sops")},
		{name: "sops file, nothing", cli: true, body: in("sops")},
		{name: "sops file, sops not selected", provider: settings(key + methodBlock("aes_gcm {}\nsops {}") +
			defaultBlock(`method = "method.aes_gcm.main"`)),
			body: in("sops")},
		{name: "sops file, no key", body: in("sops", `method = "sops"`)},
		{name: "age file, only aes_gcm", provider: settings(key), body: in("age")},
		{name: "age without settings", body: in("age", `method = "age"`)},
		{name: "encrypted, nothing configured", body: in("derived")},
		{name: "encrypted, two key providers", provider: settings(keys), body: in("sealed")},
		{name: "encrypted, two methods", provider: settings(key + methodBlock("aes_gcm {}\naes_gcm {\nname = \"b\"\n}")),
			body: in("sealed")},
		{name: "encrypted, text without state", provider: text(strings.Split(staticText, "state {")[0]), body: in("sealed")},
		{name: "encrypted, only unencrypted", body: in("sealed", `method = "unencrypted"`)},
		{name: "encrypted, unencrypted in place of the default", provider: good, body: in("sealed", `method = "unencrypted"`)},
		{name: "encrypted, sops in place of the default", provider: good, body: in("sealed", `method = "sops"`)},
		{name: "encrypted, of two key providers the second", body: in("sealed"), provider: settings(keyBlock("static {\nname = \"b\"\nkey = \"" +
			staticKey + "\"\n}\nstatic {\nname = \"k\"\nkey = \"" + staticKey + "\"\n}"))},
		{name: "encrypted, TF_ENCRYPTION without a method", env: `TF_ENCRYPTION=key_provider "static" "k" { key = "` + staticKey + `" }`,
			body: in("sealed")},
		{name: "text, a misspelt kind of a key provider", body: in("sealed"), provider: text("key_provider \"pbkfd2\" \"k\" {\n" +
			"passphrase = \"a passphrase\"\n}\nmethod \"aes_gcm\" \"m\" {\nkeys = key_provider.pbkdf2.k\n}\nstate {\nmethod = method.aes_gcm.m\n}")},
		{name: "text, a misspelt kind of a method", body: in("sealed"), provider: text(strings.Replace(staticText, `"aes_gcm"`, `"aes-gcm"`, 1))},
		{name: "encrypted, a kind with settings", body: in("sealed", `method = "aes_gcm"`)},
		{name: "encrypted, text with a key alone", provider: text(`key_provider "static" "k" { key = "` + staticKey + `" }`), body: in("sealed")},
		{name: "plaintext, nothing configured", body: in("plain")},
		{name: "plaintext, aes_gcm", provider: settings(key), body: in("plain")},
		{name: "plaintext, enforced", provider: settings("enforced = true"), body: in("plain", `method = "unencrypted"`)},
		{name: "wrong passphrase", cli: true, provider: passphrase("this is not the passphrase"), body: in("derived")},
		{name: "wrong key", provider: settings(keyBlock("static {\nkey = \"" + strings.Repeat("ab", 32) + "\"\n}")), body: in("sealed")},
		{name: "passphrase with a line break", provider: passphrase("this is not the passphrase\n"), body: in("derived")},
		{name: "key of another kind", provider: good, body: in("derived")},
		{name: "name of a file as settings", provider: text("/etc/keys.hcl"), body: in("sealed")},
		{name: "empty file", provider: good, body: in("empty")},
		{name: "text file", provider: good, body: in("text")},
		{name: "cut file", provider: good, body: in("cut")},
		{name: "JSON of something else", provider: good, body: in("json")},
		{name: "encrypted data alone", provider: good, body: in("part")},
		{name: "pointer of LFS", provider: good, body: in("lfs")},
		{name: "conflict", provider: good, body: in("conflict")},
		{name: "file of Ansible Vault", provider: good, body: in("ansible")},
		{name: "web page", provider: good, body: in("page")},
		{name: "UTF-16", provider: good, body: in("utf16")},
		{name: "random bytes", provider: good, body: in("random")},
		{name: "plan file, aes_gcm", provider: good, body: in("plan")},
		{name: "sensitive output in only", body: in("plain", `method = "unencrypted"`, `only = ["hidden"]`)},
		{name: "plan file", body: in("plan", `method = "unencrypted"`)},
		{name: "record of a backend", body: in("record", `method = "unencrypted"`)},
		{name: "state of a future version", body: in("future", `method = "unencrypted"`)},
		{name: "envelope of a future version", provider: good, body: in("newer")},
		// Blocks of the provider.
		{name: "short passphrase", provider: passphrase("short"), body: in("sealed")},
		{name: "empty passphrase", provider: passphrase(""), body: in("sealed")},
		{name: "no passphrase", provider: settings(keyBlock("pbkdf2 {}")), body: in("sealed")},
		{name: "passphrase and chain", provider: settings(keyBlock("pbkdf2 {\npassphrase = \"0123456789abcdef\"\nchain = " +
			"\"key_provider.static.k\"\n}")),
			body: in("sealed")},
		{name: "few iterations", provider: settings(keyBlock("pbkdf2 {\npassphrase = \"0123456789abcdef\"\niterations = 1000\n}")),
			body: in("sealed")},
		{name: "key that is no hexadecimal", provider: settings(keyBlock("static {\nkey = \"xyz\"\n}")), body: in("sealed")},
		{name: "hash function", provider: settings(keyBlock("pbkdf2 {\npassphrase = \"0123456789abcdef\"\nhash_function = \"md5\"\n}")),
			body: in("sealed")},
		{name: "argument, misspelt", cli: true, provider: settings(keyBlock("pbkdf2 {\npassphrse = \"x\"\n}")), body: in("sealed")},
		{name: "block, misspelt", cli: true, provider: settings("metod {}"), body: in("sealed")},
		{name: "kind of a key provider, misspelt", provider: settings(keyBlock("pbkdf {}")), body: in("sealed")},
		{name: "default.method, misspelt", provider: settings(key + defaultBlock(`method = "method.aes_gcm.mian"`)), body: in("sealed")},
		{name: "fallback of default, misspelt", provider: settings(key + defaultBlock("fallback {\nmethod = \"method.aes_gcm.old\"\n}")),
			body: in("sealed")},
		{name: "default.method, no address", provider: settings(key + defaultBlock(`method = "aes_gcm.main"`)), body: in("sealed")},
		{name: "default.method, a kind with settings", provider: settings(key + defaultBlock(`method = "aes_gcm"`)), body: in("sealed")},
		{name: "default without method, of two", provider: settings(keys + "default {}"), body: in("sealed")},
		{name: "two defaults", cli: true, provider: settings(key + "default {}\ndefault {}"), body: in("sealed")},
		{name: "keys, misspelt", provider: settings(key + methodBlock("aes_gcm {\nkeys = \"key_provider.static.mian\"\n}")),
			body: in("sealed")},
		{name: "keys, no address", provider: settings(key + methodBlock("aes_gcm {\nkeys = \"static.main\"\n}")), body: in("sealed")},
		{name: "keys, of two", provider: settings(keys + methodBlock("aes_gcm {}")), body: in("sealed")},
		{name: "keys, of none", provider: settings(methodBlock("aes_gcm {}")), body: in("sealed")},
		{name: "key_provider in place of keys", provider: settings(key +
			methodBlock("aes_gcm {\nkey_provider = \"key_provider.static.main\"\n}")),
			body: in("sealed")},
		{name: "chain, misspelt", provider: settings(keyBlock("pbkdf2 {\nchain = \"key_provider.static.mian\"\n}")), body: in("sealed")},
		{name: "two entries without a name", provider: settings(key + key), body: in("sealed")},
		{name: "name with a space", provider: settings(keyBlock("static {\nname = \"a b\"\nkey = \"00\"\n}")), body: in("sealed")},
		{name: "text and blocks", provider: settings("encryption = \"\"\n" + key), body: in("sealed")},
		{name: "then that leads nowhere", provider: settings(methodBlock("age {\npassphrase = \"p\"\nthen = \"method.aes_gcm.main\"\n}")),
			body: in("age")},
		// OpenTofu's text.
		{name: "text, syntax", cli: true, provider: text("state {"), body: in("sealed")},
		{name: "text, argument misspelt", provider: text("key_provider \"static\" \"k\" {\n  kye = \"00\"\n}\n" +
			"method \"aes_gcm\" \"m\" { keys = key_provider.static.k }\nstate { method = method.aes_gcm.m }"), body: in("sealed")},
		{name: "text, block misspelt", provider: text("sate {}"), body: in("sealed")},
		{name: "text, method misspelt", provider: text(strings.Replace(staticText, "method = method.aes_gcm.m ", "method = method.aes_gcm.n ",
			1)),
			body: in("sealed")},
		{name: "text, no such key provider", provider: text("method \"aes_gcm\" \"m\" { keys = key_provider.static.k }\nstate { method = " +
			"method.aes_gcm.m }"),
			body: in("sealed")},
		{name: "text, no such kind", provider: text("method \"aes\" \"m\" {}\nstate { method = method.aes.m }"), body: in("sealed")},
		{name: "text, no such variable", provider: text("key_provider \"static\" \"k\" { key = var.nobody }\n" +
			"method \"aes_gcm\" \"m\" { keys = key_provider.static.k }\nstate { method = method.aes_gcm.m }"), body: in("sealed")},
		{name: "text, key without quotes", provider: text("key_provider \"static\" \"k\" { key = abc }\n" +
			"method \"aes_gcm\" \"m\" { keys = key_provider.static.k }\nstate { method = method.aes_gcm.m }"), body: in("sealed")},
		{name: "text, kind as method", provider: text("state { method = \"sops\" }"), body: in("sealed")},
		{name: "text, two states", provider: text("state {}\nstate {}"), body: in("sealed")},
		{name: "text, a file without encryption", provider: text("terraform {\n  required_version = \"1\"\n}"), body: in("sealed")},
		{name: "environment, switched off", cli: true,
			env: "TF_ENCRYPTION=key_provider \"pbkdf2\" \"k\" { passphrase = \"a passphrase of 16 bytes\" }\n" +
				"method \"aes_gcm\" \"m\" { keys = key_provider.pbkdf2.k }\nstate { method = method.aes_gcm.m }",
			provider: settings("use_environment = false"), body: in("derived")},
		// Which provider block is used.
		{name: "alias that is not chosen", cli: true, provider: aliased, body: in("derived")},
		{name: "alias that is not chosen, with a method", provider: aliased, body: in("derived", `method = "method.aes_gcm.main"`)},
		{name: "alias that is not chosen, credentials", provider: aliased, body: remote},
		{name: "empty method", provider: settings(key + "method {}"), body: in("sealed")},
		{name: "empty key_provider", provider: settings("key_provider {}"), body: in("sealed")},
		{name: "empty credentials", provider: settings("credentials {}"), body: in("sealed")},
		{name: "empty default", provider: settings("default {}"), body: in("sealed")},
		{name: "TF_ENCRYPTION beside blocks", cli: true, env: "TF_ENCRYPTION=" +
			"key_provider \"pbkdf2\" \"main\" { passphrase = \"OpenTofu's own passphrase\" }\n" +
			"method \"aes_gcm\" \"main\" { keys = key_provider.pbkdf2.main }\nstate { method = method.aes_gcm.main }", provider: settings(
			keyBlock("static {\nkey = \"" + strings.Repeat("ab", 32) + "\"\n}")), body: in("sealed")},
		// The data source.
		{name: "no source", provider: good, body: reads("s")},
		{name: "two sources", cli: true, provider: good, body: reads("s", fromFile("a"), fromHTTP("https://state.example.com/"))},
		{name: "two blocks of a source", provider: good, body: reads("s", fromFile("a"), fromFile("b"))},
		{name: "method, no address", provider: good, body: in("sealed", `method = "aes_gcm.m"`)},
		{name: "method, address of a key provider", provider: good, body: in("sealed", `method = "key_provider.static.main"`)},
		{name: "method, empty", provider: good, body: in("sealed", `method = ""`)},
		{name: "text, empty", provider: text(" \n"), body: in("sealed")},
		{name: "text, base64", provider: text("a2V5X3Byb3ZpZGVyIHt9"), body: in("sealed")},
		{name: "text, JSON in single quotes", provider: text("{'state': {}}"), body: in("sealed")},
		{name: "text, a colon", provider: text("state {\n  method: x\n}"), body: in("sealed")},
		{name: "text, a provider block", provider: text("provider \"statecrypt\" {\n}"), body: in("sealed")},
		{name: "text, a variable block", provider: text("variable \"x\" {\n}"), body: in("sealed")},
		{name: "text, a backend block", provider: text("backend \"http\" {\n}"), body: in("sealed")},
		{name: "git, token in the address, and nobody there", provider: good, body: `data "statecrypt_remote_state" "s" {
  git {
    repository = "https://x8Kq-zP2w9LmN3vR7tYb@127.0.0.1:1/a/b.git"
    path       = "s"
  }
}
`},
		{name: "method, misspelt", cli: true, provider: settings(key), body: in("sealed", `method = "method.aes_gcm.mian"`)},
		{name: "fallback without method", provider: good, body: in("sealed", "fallback {\nmethod = \"unencrypted\"\n}")},
		{name: "fallback, misspelt", provider: settings(key), body: in("sealed", `method = "method.aes_gcm.main"`,
			"fallback {\nmethod = \"method.aes_gcm.od\"\n}")},
		{name: "name and method", provider: good, body: in("sealed", `name = "x"`, `method = "unencrypted"`)},
		{name: "name of nobody", provider: good, body: in("sealed", `name = "x"`)},
		{name: "name, misspelt", provider: text(staticText + "remote_state_data_sources {\nremote_state_data_source \"network\" {\n" +
			"method = method.aes_gcm.m\n}\n}"), body: in("sealed", `name = "netwrk"`)},
		{name: "name beside blocks", provider: settings(key), body: in("sealed", `name = "x"`)},
		{name: "only, misspelt", provider: good, body: in("sealed", `only = ["opn"]`)},
		{name: "only, nothing like it", provider: good, body: in("sealed", `only = ["something_else"]`)},
		{name: "defaults, a list", provider: good, body: in("sealed", `defaults = ["x"]`)},
		{name: "defaults, twice", provider: good, body: in("sealed", `defaults = { a = 1 }`, `sensitive_defaults = { a = 1 }`)},
		{name: "on_missing, misspelt", provider: good, body: in("sealed", `on_missing = "default"`)},
		{name: "expected_lineage, empty", provider: good, body: in("sealed", `expected_lineage = ""`)},
		{name: "expected_lineage, another", provider: good, body: in("sealed", `expected_lineage = "l-2"`)},
		{name: "minimum_serial, later", provider: good, body: in("sealed", "minimum_serial = 8")},
		{name: "minimum_serial, a fraction", provider: good, body: in("sealed", "minimum_serial = 6.5")},
		{name: "max_size, zero", provider: good, body: in("sealed", "max_size = 0")},
		{name: "max_size, too small", provider: good, body: in("sealed", "max_size = 100")},
		{name: "workspace, empty", provider: good, body: in("sealed", `workspace = ""`)},
		{name: "workspace, climbs", provider: good, body: in("sealed", `workspace = "../x"`)},
		{name: "workspace, another", provider: good, body: reads("s", fmt.Sprintf(
			"file {\npath = \"x\"\nworkspace_dir = %q\n}\nworkspace = \"prod\"", p.dir))},
		{name: "workspace, of http", provider: good, body: reads("s", fromHTTP("https://state.example.com/"), `workspace = "x"`)},
		{name: "resource reads are off", provider: good, body: "data \"statecrypt_resource\" \"s\" {\naddress = \"a.b\"\n" +
			fromFile(filepath.Join(p.dir, "sealed")) + "\n}\n"},
		{name: "resource without address", cli: true, provider: good, body: "data \"statecrypt_resource\" \"s\" {\n" + fromFile("x") + "\n}\n"},
		// Files.
		{name: "no such file", cli: true, provider: good, body: in("gone")},
		{name: "a directory", provider: good, body: in(".")},
		// HTTP.
		{name: "http, sign-in page", provider: good, body: http("/login")},
		{name: "http, redirect to a sign-in page", provider: good, body: http("/redirect")},
		{name: "http, 404", provider: good, body: http("/gone")},
		{name: "http, 404 with credentials", provider: credentials("http", p.server.URL+"/", `bearer_token = "t"`), body: http("/gone")},
		{name: "http, 401", provider: good, body: http("/private")},
		{name: "http, 401 with credentials", provider: credentials("http", p.server.URL+"/", `bearer_token = "t"`), body: http("/private")},
		{name: "http, credentials for another path", provider: credentials("http", p.server.URL+"/other/", `bearer_token = "t"`),
			body: http("/private")},
		{name: "http, 403", cli: true, provider: good, body: http("/forbidden")},
		{name: "http, 500", provider: good, body: http("/broken")},
		{name: "http, password in the address", provider: good, body: reads("s", fromHTTP("https://ci:pw@state.example.com/"))},
		{name: "http, token in the address", provider: good, body: reads("s", fromHTTP("https://state.example.com/?private_token=x"))},
		{name: "http, no scheme", provider: good, body: reads("s", fromHTTP("state.example.com"))},
		{name: "http, nobody there", provider: good, body: reads("s", fromHTTP("http://127.0.0.1:1/"))},
		{name: "credentials without url", cli: true, provider: settings("credentials {\nhttp {}\n}"), body: http("/private")},
		{name: "credentials, url without host", provider: credentials("http", "state.example.com", `bearer_token = "t"`), body: http("/private")},
		// git.
		{name: "git, no such branch", cli: true, provider: good, body: git("nope", "s")},
		{name: "git, branch misspelt", provider: good, body: git("mian", "s")},
		{name: "git, short commit id", provider: good, body: git("abc1234", "s")},
		{name: "git, no such commit", provider: good, body: git(strings.Repeat("ab", 20), "s")},
		{name: "git, no such file", provider: good, body: git("main", "gone")},
		{name: "git, file in another folder", provider: good, body: git("main", "terraform.tfstate")},
		{name: "git, path misspelt", provider: good, body: git("main", "networks/terraform.tfstate")},
		{name: "git, path in another case", provider: good, body: git("main", "Network/terraform.tfstate")},
		{name: "git, folder misspelt in a large repository", provider: good, body: git("large", "envs/prd/terraform.tfstate")},
		{name: "git, a directory", provider: good, body: git("main", "network")},
		{name: "git, credentials missing", provider: good, body: remote},
		{name: "git, credentials wrong", provider: credentials("git", p.git.Origin+"/", "username = \"ci\"\npassword = \"wrong\""), body: remote},
		{name: "git, credentials for another path", provider: credentials("git", p.git.Origin+"/other/", "username = \"ci\"\npassword = \"x\""),
			body: remote},
		{name: "git, ref like an option", provider: good, body: git("--upload-pack=x", "s")},
		{name: "git, path that climbs", provider: good, body: git("main", "../s")},
		{name: "git, absolute path", provider: good, body: git("main", "/s")},
		{name: "git, transport", provider: good, body: reads("s", fromGit("ext::sh -c id", "main", "s"))},
		{name: "git, no such repository", provider: good, body: reads("s", fromGit("file:///no/such/repository", "main", "s"))},
		{name: "git, on_locked", provider: good, body: reads("s", strings.Replace(fromGit(p.repo.FileURL(), "main", "s"), "\n}",
			"\non_locked = \"fail\"\n}", 1))},
		// S3.
		{name: "s3, empty version", provider: good, body: reads("s",
			"s3 {\nbucket = \"acme-states\"\nkey = \"s\"\nregion = \"eu-west-1\"\nversion_id = \"\"\n}")},
		{name: "s3 without a key", provider: good, body: reads("s", "s3 {\nbucket = \"acme-states\"\nregion = \"eu-west-1\"\n}")},
	}
}

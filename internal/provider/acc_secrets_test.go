package provider

import (
	"archive/zip"
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

// secrets are texts that must not be found anywhere.
type secrets struct {
	mu    sync.Mutex
	found map[string]string // :: spelling → what it is
}

// add makes a secret of 32 bytes that looks different in every encoding.
func (s *secrets) add(name string) string {
	secret := "c4/" + name + "+"
	for len(secret) < 32 {
		secret += rand.Text()
	}
	return s.keep(name, secret[:32])
}

func (s *secrets) keep(name, secret string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found == nil {
		s.found = map[string]string{}
	}
	for _, spelling := range spellings(secret) {
		s.found[spelling] = name
	}
	return secret
}

// spellings are the ways in which a text may stand in a file. In base64 it
// depends on how many bytes stand before it.
func spellings(text string) []string {
	out := []string{text, url.QueryEscape(text), url.PathEscape(text), hex.EncodeToString([]byte(text)),
		strings.ToUpper(hex.EncodeToString([]byte(text)))}
	for before := range 3 {
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			encoded := encoding.EncodeToString(append(make([]byte, before), text...))
			out = append(out, encoded[(before*8+5)/6:(before+len(text))*8/6])
		}
	}
	return out
}

// in returns the name of a secret that data holds, "" when there is none.
func (s *secrets) in(data []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for spelling, name := range s.found {
		if bytes.Contains(data, []byte(spelling)) {
			return name
		}
	}
	return ""
}

func (s *secrets) mustNotBeIn(t *testing.T, what string, data []byte) {
	t.Helper()
	if name := s.in(data); name != "" {
		t.Errorf("%s holds the secret %q", what, name)
	}
}

// run runs the CLI with all its logs on, and looks everywhere: at what it
// prints, at every file that it leaves, and at the commands that are running.
func (s *secrets) run(t *testing.T, p *project, args ...string) (string, error) {
	t.Helper()
	p.setenv("TF_LOG=TRACE", "TF_LOG_PATH="+filepath.Join(p.dir, "trace.log"), "TF_LOG_SDK_PROTO_DATA_DIR="+p.dir)
	stop, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		s.watch(t, stop)
	}()
	out, err := p.run(args...)
	close(stop)
	<-watched
	s.mustNotBeIn(t, "what "+args[0]+" prints", []byte(out))
	s.searchFiles(t, p.dir)
	return out, err
}

// watch looks at the arguments of all processes that begin, where the system
// shows them.
func (s *secrets) watch(t *testing.T, stop <-chan struct{}) {
	before, _ := os.ReadDir("/proc")
	old := map[string]bool{}
	for _, process := range before {
		old[process.Name()] = true
	}
	for {
		select {
		case <-stop:
			return
		case <-time.After(3 * time.Millisecond):
		}
		processes, _ := os.ReadDir("/proc")
		for _, process := range processes {
			if old[process.Name()] {
				continue
			}
			if data, err := os.ReadFile(filepath.Join("/proc", process.Name(), "cmdline")); err == nil {
				s.mustNotBeIn(t, "the command line "+string(data), data)
			}
		}
	}
}

func (s *secrets) searchFiles(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) == ".tf" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		s.mustNotBeIn(t, entry.Name(), data)
		archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil { // not a plan
			return nil
		}
		for _, f := range archive.File {
			r, err := f.Open()
			if err != nil {
				return err
			}
			data, err := io.ReadAll(r)
			if err != nil {
				return err
			}
			s.mustNotBeIn(t, entry.Name()+"/"+f.Name, data)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestSpellings(t *testing.T) {
	t.Parallel()
	var s secrets
	secret := s.add("x")
	for _, text := range []string{"a " + secret, "Basic " + base64.StdEncoding.EncodeToString([]byte("ci:"+secret)),
		url.QueryEscape("=" + secret), fmt.Sprintf("%x", "a"+secret)} {
		if s.in([]byte(text)) == "" {
			t.Errorf("%q is not found in %q", secret, text)
		}
	}
	if s.in([]byte("c4/x+")) != "" {
		t.Error("a part of it is found")
	}
}

func passphraseText(passphrase, target string) string {
	return fmt.Sprintf("key_provider \"pbkdf2\" \"k\" {\npassphrase = %q\niterations = 200000\n}\nmethod \"aes_gcm\" \"m\" { keys = "+
		"key_provider.pbkdf2.k }\n%s\n", passphrase, target)
}

const (
	stateTarget = `state { method = method.aes_gcm.m }`
	// A tofu run seals its own state for the target state. Here it must not,
	// or nothing could be found in it.
	readerTarget = "remote_state_data_sources {\ndefault {\nmethod = method.aes_gcm.m\n}\n}"
)

func stateWith(open, sensitive string) string {
	return fmt.Sprintf(`{"version":4,"terraform_version":"1.12.6","serial":1,"lineage":"l","resources":[],"outputs":{"open":{"value":%q,"type":"string"},"hidden":{"value":%q,"type":"string","sensitive":true}}}`, open, sensitive)
}

// guarded gives the state at path to those who bring its secrets. To others it
// repeats what they brought.
type guarded struct {
	state   []byte
	allowed func(*http.Request) bool
}

func guard(places map[string]guarded) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		place, ok := places[r.URL.Path]
		if ok && place.allowed(r) {
			_, _ = w.Write(place.state)
			return
		}
		w.Header().Set("WWW-Authenticate", fmt.Sprintf("Basic realm=%q", r.Header.Get("Authorization")))
		w.Header().Set("X-Echo", r.URL.String())
		w.WriteHeader(http.StatusForbidden)
		_ = r.Write(w)
	}
}

// secretWorld is a set of servers and files whose every secret is known.
type secretWorld struct {
	secrets
	http    *stateServer
	git     *gittest.HTTPServer
	env     map[string]string // what the run is started with
	keyFile string
	sealed  string // by the key of keyFile
}

func newSecretWorld(t *testing.T) *secretWorld {
	t.Helper()
	w := &secretWorld{}
	httpPassword, gitPassword, envPassphrase := w.add("TF_HTTP_PASSWORD"), w.add("GIT_PASSWORD"), w.add("TF_ENCRYPTION")
	passphrase, bearer, header, query := w.add("passphrase"), w.add("bearer_token"), w.add("headers"), w.add("query")
	key := w.add("key_file")
	w.keyFile = writeTemp(t, "key", []byte(key))
	fromEnv := sealedAs(t, passphraseText(envPassphrase, stateTarget), stateWith("env", w.add("output-env")))
	w.sealed = writeTemp(t, "sealed", sealedAs(t, fmt.Sprintf("key_provider \"static\" \"k\" { key_file = %q }\nmethod \"aes_gcm\" \"m\" "+
		"{ keys = key_provider.static.k }\n%s\n", w.keyFile, stateTarget),
		stateWith("file", w.add("output-file"))))

	w.http = serve(t, httptest.NewServer, guard(map[string]guarded{
		"/env": {fromEnv, func(r *http.Request) bool {
			_, password, _ := r.BasicAuth()
			return password == httpPassword
		}},
		"/ephemeral": {sealedAs(t, passphraseText(passphrase, stateTarget), stateWith("ephemeral", w.add("output-ephemeral"))),
			func(r *http.Request) bool {
				return r.Header.Get("Authorization") == "Bearer "+bearer && r.Header.Get("X-Token") == header && r.URL.Query().Get("sig") == query
			}},
	}))
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main", gittest.File{Path: "s", Data: string(fromEnv)})
	w.git = gittest.HTTP(t, repo, gittest.HTTPOptions{Username: "ci", Password: gitPassword})
	w.env = map[string]string{
		"GIT_USERNAME": "ci", "GIT_PASSWORD": gitPassword,
		"TF_HTTP_ADDRESS": w.http.URL + "/", "TF_HTTP_USERNAME": "ci", "TF_HTTP_PASSWORD": httpPassword,
		"TF_ENCRYPTION":     passphraseText(envPassphrase, readerTarget),
		"TF_VAR_passphrase": passphrase, "TF_VAR_bearer": bearer, "TF_VAR_header": header, "TF_VAR_query": query,
	}
	return w
}

// project starts with the environment of the world, changed as env says.
func (w *secretWorld) project(t *testing.T, env map[string]string, config ...string) *project {
	t.Helper()
	p := newProject(t, map[string]string{"main.tf": configuration(config...)})
	for name, value := range w.environ(env) {
		p.setenv(name + "=" + value)
	}
	return p
}

func (w *secretWorld) environ(changes map[string]string) map[string]string {
	all := maps.Clone(w.env)
	maps.Copy(all, changes)
	return all
}

func ephemeralVariables(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "variable %q {\ntype = string\nephemeral = true\n}\n", name)
	}
	return b.String()
}

func (w *secretWorld) environmentProvider() string {
	return fmt.Sprintf("provider \"statecrypt\" {\ncredentials {\ngit {\nurl = \"%s/\"\n}\n}\n}\n", w.git.Origin)
}

func (w *secretWorld) keyFileProvider() string {
	return fmt.Sprintf("provider \"statecrypt\" {\nalias = \"file\"\nkey_provider {\nstatic {\nname = \"k\"\nkey_file = %s\n}\n}\nmethod "+
		"{\naes_gcm {\nname = \"m\"\nkeys = \"key_provider.static.k\"\n}\n}\n%s}\n",
		quote(w.keyFile), staticDefault)
}

func (w *secretWorld) ephemeralProvider(more string) string {
	return fmt.Sprintf(`provider "statecrypt" {
  alias = "ephemeral"
  key_provider {
    pbkdf2 {
      name       = "k"
      passphrase = var.passphrase
    }
  }
  method {
    aes_gcm {
      name = "m"
      keys = "key_provider.pbkdf2.k"
    }
  }
  %s
  credentials {
    http {
      url          = "%s/"
      bearer_token = var.bearer
      headers      = { X-Token = var.header }
      query        = { sig = var.query }
      %s
    }
  }
}
`, staticDefault, w.http.URL, more)
}

// Promise: Secrets in text
func TestAccSecretsStayHidden(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	w := newSecretWorld(t)
	config := []string{
		w.environmentProvider(), w.keyFileProvider(),
		reads("http", fromHTTP(w.http.URL+"/env")), reads("git", fromGit(w.git.URL, "main", "s")),
		reads("file", "provider = statecrypt.file", fromFile(w.sealed)),
		output("open", "[data.statecrypt_remote_state.http.outputs, data.statecrypt_remote_state.git.outputs, "+
			"data.statecrypt_remote_state.file.outputs]"),
	}
	if knowsEphemeral() {
		source := "provider = statecrypt.ephemeral\n" + fromHTTP(w.http.URL+"/ephemeral")
		config = append(config, ephemeralVariables("passphrase", "bearer", "header", "query"), w.ephemeralProvider(""),
			reads("ephemeral", source), opens("hidden", source), output("length", "length(data.statecrypt_remote_state.ephemeral.outputs)"),
			"resource \"terraform_data\" \"it\" {\nlifecycle {\nprecondition {\ncondition = "+
				"ephemeral.statecrypt_remote_state.hidden.sensitive_outputs.hidden != \"\"\nerror_message = \"no\"\n}\n}\n}\n")
	}
	p := w.project(t, nil, config...)
	for _, args := range [][]string{{"validate"}, {"plan", "-out=plan"}, {"show", "plan"}, {"show", "-json", "plan"}, {"apply", "plan"},
		{"show", "-json"}, {"plan", "-refresh-only"}} {
		isShown := !losesSchemas() || !slices.Equal(args, []string{"show", "-json", "plan"})
		if out, err := w.run(t, p, args...); err != nil && isShown {
			t.Fatalf("%s: %v\n%s", args, err, out)
		}
	}
	state, err := os.ReadFile(filepath.Join(p.dir, "terraform.tfstate"))
	if err != nil || !bytes.Contains(state, []byte(`"file"`)) {
		t.Errorf("the outputs did not arrive, so nothing was tested: %v\n%s", err, state)
	}
	log, err := os.ReadFile(filepath.Join(p.dir, "trace.log"))
	if err != nil || !bytes.Contains(log, []byte("statecrypt_remote_state")) {
		t.Errorf("the log is empty, so nothing was tested: %v", err)
	}
}

// Nor does any error repeat a secret, whatever a server or a wrong setting
// does to it.
//
// Promise: Secrets in text
func TestErrorsHideSecrets(t *testing.T) {
	isolateGit(t)
	w := newSecretWorld(t)
	golden := openMistakes(t, "secrets")
	for name, c := range w.failures(t) {
		t.Run(name, func(t *testing.T) {
			for variable, value := range w.environ(c.env) {
				t.Setenv(variable, value)
			}
			e := evaluate(t, c.config...)
			e.wantMistake(golden, name)
			w.mustNotBeIn(t, "the error", []byte(shownText(e.errors)))
		})
	}
}

// On a real CLI, which shows the lines where an error is, logs and runs programs.
//
// Promise: Secrets in text
func TestAccErrorsHideSecrets(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	w := newSecretWorld(t)
	failures, shown := w.failures(t), testkit.ReadGolden(t, mistakesFile)
	for name, want := range map[string]string{
		"refused over http": "", "refused by git": "", "wrong key file": "", "secret for a url": "",
		"broken TF_ENCRYPTION": "TF_ENCRYPTION",             // which OpenTofu reads first, and has an error of its own
		"passphrase for a key": "key_provider.static.k.key", // found later, because no variable has a value in validate
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := failures[name]
			if c.ephemerally && !knowsEphemeral() {
				t.Skip("this CLI has no ephemeral values")
			}
			want := cmp.Or(want, strings.Split(shown["secrets: "+name], "\n")[1])
			out, err := w.run(t, w.project(t, c.env, c.config...), "plan", "-out=plan")
			if err == nil || !says(want).MatchString(out) {
				t.Errorf("got %v, want %q:\n%s", err, want, out)
			}
		})
	}
}

// TestAccOneLine: the CLIs print the line where a mistake is, so it is never at a block that fits into a
// line, with a secret as its only argument.
func TestAccOneLine(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	const short = "0x" + "c4n4" // no key, and no passphrase
	for _, blocks := range []string{
		"key_provider {\nstatic { key = %q }\n}", "key_provider {\npbkdf2 { passphrase = %q }\n}", "method {\nkubeform { key = %q }\n}",
		"key_provider {\nstatic { key = \"00000000000000000000000000000000\" }\nstatic { key = %q }\n}",
	} {
		p := newProject(t, map[string]string{"main.tf": "terraform {\nrequired_providers {\n" +
			"statecrypt = { source = \"statecrypt/statecrypt\" }\n}\n}\nprovider \"statecrypt\" {\n" + fmt.Sprintf(blocks, short) + "\n}\n" +
			"data \"statecrypt_remote_state\" \"s\" {\nfile { path = \"s.tfstate\" }\n}\n"})
		if out, err := p.run("plan"); err == nil || strings.Contains(out, short) {
			t.Errorf("%s: %v\n%s", blocks, err, out)
		}
	}
}

// failure is a root module whose read fails.
type failure struct {
	env         map[string]string
	config      []string
	ephemerally bool
}

func (w *secretWorld) failures(t *testing.T) map[string]failure {
	t.Helper()
	other := writeTemp(t, "other", sealed(t, argumentsState))
	onePassphrase := func(text string) string {
		return ephemeralVariables("passphrase") + "provider \"statecrypt\" {\nencryption = " + text + "\n}\n"
	}
	textOnly := map[string]string{"TF_ENCRYPTION": ""}
	gone := httptest.NewServer(nil)
	gone.Close()
	redirecting := serve(t, httptest.NewServer, func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, w.http.URL+"/nowhere?"+r.URL.RawQuery, http.StatusFound)
	})
	variables := ephemeralVariables("passphrase", "bearer", "header", "query")
	fromEphemeral := "provider = statecrypt.ephemeral\n"
	return map[string]failure{
		"refused over http": {map[string]string{"TF_HTTP_PASSWORD": w.add("wrong-http")},
			[]string{reads("s", fromHTTP(w.http.URL+"/env"))}, false},
		"refused by git": {map[string]string{"GIT_PASSWORD": w.add("wrong-git")},
			[]string{w.environmentProvider(), reads("s", fromGit(w.git.URL, "main", "s"))}, false},
		"git password for nobody":  {nil, []string{reads("s", fromGit(w.git.URL, "main", "s"))}, false},
		"http password for nobody": {map[string]string{"TF_HTTP_ADDRESS": ""}, []string{reads("s", fromHTTP(w.http.URL+"/env"))}, false},
		"git password of two lines": {map[string]string{"GIT_PASSWORD": w.add("two") + "\n" + w.add("lines")},
			[]string{w.environmentProvider(), reads("s", fromGit(w.git.URL, "main", "s"))}, false},
		"secret in place of a file": {map[string]string{"GIT_PASSWORD": "", "GIT_PASSWORD_FILE": w.add("password-file")},
			[]string{w.environmentProvider(), reads("s", fromGit(w.git.URL, "main", "s"))}, false},
		"wrong passphrase": {map[string]string{"TF_ENCRYPTION": passphraseText(w.add("wrong"), readerTarget)},
			[]string{reads("s", fromHTTP(w.http.URL+"/env"))}, false},
		"wrong key file": {nil, []string{w.keyFileProvider(), reads("s", "provider = statecrypt.file", fromFile(other))}, false},
		"wrong bearer": {map[string]string{"TF_VAR_bearer": w.add("wrong-bearer")},
			[]string{variables, w.ephemeralProvider(""), reads("s", fromEphemeral, fromHTTP(w.http.URL+"/ephemeral"))}, true},
		"broken header": {map[string]string{"TF_VAR_header": w.add("header1") + "\n" + w.add("header2")},
			[]string{variables, w.ephemeralProvider(""), reads("s", fromEphemeral, fromHTTP(w.http.URL+"/ephemeral"))}, true},
		"broken certificate": {map[string]string{"TF_VAR_header": w.add("pem")},
			[]string{variables, w.ephemeralProvider("client_certificate_pem = var.header\nclient_private_key_pem = var.header"),
				reads("s", fromEphemeral, fromHTTP(w.http.URL+"/ephemeral"))}, true},
		"secret for a url": {nil, []string{variables, strings.Replace(w.ephemeralProvider(""), `"`+w.http.URL+`/"`, "var.query", 1),
			reads("s", fromEphemeral, fromHTTP(w.http.URL+"/ephemeral"))}, true},
		"short passphrase": {map[string]string{"TF_VAR_passphrase": w.keep("short", "c4/sh0rt")},
			[]string{variables, w.ephemeralProvider(""), reads("s", fromEphemeral, fromHTTP(w.http.URL+"/ephemeral"))}, true},
		"wrong variable": {map[string]string{"TF_VAR_passphrase": w.add("wrong-variable")},
			[]string{variables, w.ephemeralProvider(""), reads("s", fromEphemeral, fromHTTP(w.http.URL+"/ephemeral"))}, true},
		"secret for a block": {textOnly, []string{onePassphrase(`"${var.passphrase} {}"`), reads("s", fromFile(other))}, true},
		"text with a misspelt argument": {textOnly, []string{onePassphrase(`"key_provider \"pbkdf2\" \"k\" { passphrse = ` +
			`\"${var.passphrase}\" }\nmethod \"aes_gcm\" \"m\" { keys = key_provider.pbkdf2.k }\nstate { method = method.aes_gcm.m }"`),
			reads("s", fromFile(other))}, true},
		"text that does not parse": {textOnly, []string{onePassphrase(`"key_provider \"pbkdf2\" \"k\" { passphrase = \"${var.passphrase} }"`),
			reads("s", fromFile(other))}, true},
		"passphrase for a number": {textOnly, []string{onePassphrase(`"key_provider \"pbkdf2\" \"k\" { iterations = \"${var.passphrase}\" ` +
			`}\nmethod \"aes_gcm\" \"m\" { keys = key_provider.pbkdf2.k }\nstate { method = method.aes_gcm.m }"`), reads("s", fromFile(other))}, true},
		"passphrase for a key": {textOnly, []string{onePassphrase(`"key_provider \"static\" \"k\" { key = \"${var.passphrase}\" }\nmethod ` +
			`\"aes_gcm\" \"m\" { keys = key_provider.static.k }\nstate { method = method.aes_gcm.m }"`), reads("s", fromFile(other))}, true},
		"wrong function": {textOnly, []string{onePassphrase(`"key_provider \"static\" \"k\" { key_base64 = ` +
			`base64decode(\"${var.passphrase}\") }\nmethod \"aes_gcm\" \"m\" { keys = key_provider.static.k }\nstate { method = ` +
			`method.aes_gcm.m }"`), reads("s", fromFile(other))}, true},
		"broken TF_ENCRYPTION": {map[string]string{"TF_ENCRYPTION": "remote_state_data_sources {\ndefault { method = \"" + w.add("broken") +
			"\n} }"}, []string{reads("s", fromFile(other))}, false},
		"unreachable": {map[string]string{"TF_HTTP_ADDRESS": gone.URL + "/"}, []string{reads("s", fromHTTP(gone.URL+"/env"))}, false},
		"redirected": {nil, []string{variables, strings.Replace(w.ephemeralProvider(""), w.http.URL, redirecting.URL, 1),
			reads("s", fromEphemeral, fromHTTP(redirecting.URL+"/x"))}, true},
	}
}

package provider

import (
	"bytes"
	"context"
	"encoding/json"
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
	"sync"
	"testing"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/echoprovider"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfversion"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

// The acceptance tests run a real CLI: the one at TF_ACC_TERRAFORM_PATH, else
// terraform from PATH. Without TF_ACC they skip.

// TestMain tells plugin-testing the provider's address where the caller did
// not, so that the configurations are the same on every CLI. The user's own
// settings for a CLI are none of ours.
func TestMain(m *testing.M) {
	if written := os.Getenv(vaultStub); written != "" {
		if err := serveVault(written); err != nil {
			panic(err)
		}
		return
	}
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "TF_") && !strings.HasPrefix(name, "TF_ACC") {
			_ = os.Unsetenv(name)
		}
	}
	if os.Getenv("TF_ACC") != "" {
		for name, value := range map[string]string{"TF_ACC_PROVIDER_NAMESPACE": "statecrypt", "TF_ACC_PROVIDER_HOST": registryHost()} {
			if os.Getenv(name) == "" {
				_ = os.Setenv(name, value)
			}
		}
	}
	defer func() { _ = os.RemoveAll(filepath.Dir(built.path)) }()
	m.Run()
}

func registryHost() string {
	if isTofu() {
		return "registry.opentofu.org"
	}
	return "registry.terraform.io"
}

// cliPath is the CLI under test, "" when there is none.
func cliPath() string {
	if path := os.Getenv("TF_ACC_TERRAFORM_PATH"); path != "" {
		return path
	}
	path, _ := exec.LookPath("terraform")
	return path
}

var isTofu = sync.OnceValue(func() bool {
	out, err := exec.Command(cliPath(), "version").Output()
	return err == nil && bytes.Contains(out, []byte("OpenTofu v"))
})

// needAcceptance skips tests that run the CLI by themselves, as plugin-testing
// does the others.
func needAcceptance(tb testing.TB) {
	tb.Helper()
	if os.Getenv("TF_ACC") == "" {
		tb.Skip("acceptance tests are skipped unless TF_ACC is set")
	}
	if cliPath() == "" {
		tb.Skip("there is no CLI: terraform is not on PATH, and TF_ACC_TERRAFORM_PATH is not set")
	}
}

// cliVersion is the version of the CLI, such as 1.11.4; "" when it does not tell.
var cliVersion = sync.OnceValue(func() string {
	out, err := exec.Command(cliPath(), "version", "-json").Output()
	var v struct {
		Version string `json:"terraform_version"`
	}
	if err != nil || json.Unmarshal(out, &v) != nil {
		return ""
	}
	return v.Version
})

// cliMinor is the 11 of the CLI's version 1.11.4; 0 when it does not tell.
func cliMinor() (minor int) {
	var major int
	_, _ = fmt.Sscanf(cliVersion(), "%d.%d", &major, &minor)
	return minor
}

// knowsEphemeral reports whether the CLI has ephemeral values at all.
func knowsEphemeral() bool {
	if isTofu() {
		return cliMinor() >= 11
	}
	return cliMinor() >= 10
}

// losesSchemas reports whether the CLI leaves the schemas of ephemeral resources out of a saved plan, and then cannot
// print the plan as JSON.
func losesSchemas() bool { return isTofu() && cliVersion() == "1.13.0-beta1" }

var sinceEphemeral = []tfversion.TerraformVersionCheck{tfversion.SkipBelow(tfversion.Version1_10_0)}

var factories = map[string]func() (tfprotov6.ProviderServer, error){
	"statecrypt": func() (tfprotov6.ProviderServer, error) { return NewServer("test"), nil },
	"echo":       echoprovider.NewProviderServer(),
}

// configuration is a root module of these parts.
func configuration(parts ...string) string {
	all := strings.Join(parts, "\n")
	required := "statecrypt = { source = \"statecrypt/statecrypt\" }\n"
	if strings.Contains(all, `resource "echo"`) {
		required += "echo = { source = \"statecrypt/echo\" }\n"
	}
	return "terraform {\nrequired_providers {\n" + required + "}\n}\n" + all
}

// quote writes s as an HCL string.
func quote(s string) string {
	return string(hclwrite.TokensForValue(cty.StringVal(s)).Bytes())
}

// textProvider is a provider block with the text that OpenTofu would have.
func textProvider(encryption string) string {
	return fmt.Sprintf("provider \"statecrypt\" {\nencryption = %s\n}\n", quote(encryption))
}

// reads is the data source called name.
func reads(name string, body ...string) string {
	return fmt.Sprintf("data \"statecrypt_remote_state\" %q {\n%s\n}\n", name, strings.Join(body, "\n"))
}

func output(name, expression string) string {
	return fmt.Sprintf("output %q {\nvalue = %s\n}\n", name, expression)
}

func sensitiveOutput(name, expression string) string {
	return fmt.Sprintf("output %q {\nvalue = %s\nsensitive = true\n}\n", name, expression)
}

func fromFile(path string) string { return fmt.Sprintf("file {\npath = %s\n}", quote(path)) }

func fromHTTP(address string) string {
	return fmt.Sprintf("http {\naddress = %s\nretry_max = 0\n}", quote(address))
}

func fromGit(repository, ref, path string) string {
	return fmt.Sprintf("git {\nrepository = %s\nref = %s\npath = %s\n}", quote(repository), quote(ref), quote(path))
}

func writeTemp(tb testing.TB, name string, data []byte) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

func failing(config string, words ...string) resource.TestStep {
	return resource.TestStep{Config: config, ExpectError: says(words...)}
}

func runEphemeral(t *testing.T, steps ...resource.TestStep) {
	t.Helper()
	if os.Getenv("TF_ACC") != "" && !knowsEphemeral() {
		t.Skip("this CLI has no ephemeral values")
	}
	opensOne := slices.ContainsFunc(steps, func(s resource.TestStep) bool { return strings.Contains(s.Config, "\nephemeral \"") })
	if opensOne && losesSchemas() {
		t.Skip("each step prints a plan as JSON, which this version cannot do")
	}
	resource.ParallelTest(t, resource.TestCase{TerraformVersionChecks: sinceEphemeral, ProtoV6ProviderFactories: factories, Steps: steps})
}

// headed is the title and the step of an error in this step, and more words.
func headed(s step, words ...string) []string {
	summary, doing := s.words()
	return append([]string{summary, "Step: " + doing}, words...)
}

// says matches these texts in this order, wherever the CLI wrapped its lines
// and whichever of them begin a sentence.
func says(texts ...string) *regexp.Regexp {
	var out []string
	for _, text := range texts {
		var words []string
		for _, w := range strings.Fields(text) {
			words = append(words, regexp.QuoteMeta(w))
		}
		out = append(out, strings.Join(words, `[\s│]+`))
	}
	return regexp.MustCompile("(?is)" + strings.Join(out, ".*"))
}

func compareOutput(name string, typ cty.Type, value []byte, want cty.Value) error {
	got, err := ctyjson.Unmarshal(value, typ)
	if err == nil && !got.RawEquals(want) {
		err = fmt.Errorf("output %q:\n got %#v\nwant %#v", name, got, want)
	}
	return err
}

// expected are the outputs of a vector: those in the open, and the sensitive.
func expected(tb testing.TB, v conformance.Case) (open, sensitive cty.Value) {
	tb.Helper()
	both := [2]map[string]cty.Value{{}, {}}
	for name, o := range v.Outputs() {
		typ, err := ctyjson.UnmarshalType(o.Type)
		if err != nil {
			tb.Fatal(err)
		}
		value, err := ctyjson.Unmarshal(o.Value, typ)
		if err != nil {
			tb.Fatal(err)
		}
		which := 0
		if o.Sensitive {
			which = 1
		}
		both[which][name] = value
	}
	return cty.ObjectVal(both[0]), cty.ObjectVal(both[1])
}

// staticKey makes tests quick: no key is derived.
const staticKey = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

const staticText = `key_provider "static" "k" { key = "` + staticKey + `" }
method "aes_gcm" "m" { keys = key_provider.static.k }
method "unencrypted" "u" {}
state { method = method.aes_gcm.m }
`

// sealed encrypts a state as staticText says.
func sealed(tb testing.TB, state string) []byte {
	tb.Helper()
	return sealedAs(tb, staticText, state)
}

// sealedAs encrypts a state as this text says, for its target state.
func sealedAs(tb testing.TB, text, state string) []byte {
	tb.Helper()
	data, err := library(tb, builtin.Registry(), text).State().Encrypt(tb.Context(), []byte(state))
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// library is what a program has that loads this text.
func library(tb testing.TB, registry encryption.Registry, text string) *encryption.Encryption {
	tb.Helper()
	enc, err := encryption.Load(registry, encryption.Code(text, "test"))
	if err != nil {
		tb.Fatal(err)
	}
	return enc
}

// built is the provider as a program of its own.
var built struct {
	sync.Once
	path string
	err  error
}

func builtProvider(tb testing.TB) string {
	tb.Helper()
	built.Do(func() {
		dir, err := os.MkdirTemp("", "statecrypt-acc-")
		if err != nil {
			built.err = err
			return
		}
		built.path = filepath.Join(dir, "terraform-provider-statecrypt")
		if runtime.GOOS == "windows" {
			built.path += ".exe"
		}
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", built.path, "../..")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as releases are built, and as other tests build it
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if built.err != nil {
		tb.Fatal(built.err)
	}
	return built.path
}

// project is a directory where the CLI runs with the provider as a program.
type project struct {
	tb  testing.TB
	dir string
	env []string
}

// newProject writes the files, by name, and fetches the modules they call.
func newProject(tb testing.TB, files map[string]string) *project {
	tb.Helper()
	needAcceptance(tb)
	p := &project{tb: tb, dir: tb.TempDir()}
	for name, text := range files {
		p.write(name, text)
	}
	settings := fmt.Sprintf("provider_installation {\ndev_overrides {\n\"statecrypt/statecrypt\" = %s\n}\ndirect {\nexclude = "+
		"[\"*/*/*\"]\n}\n}\n",
		quote(filepath.ToSlash(filepath.Dir(builtProvider(tb)))))
	p.env = append(gittest.Environ(tb.TempDir()), "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1", "TF_INPUT=0",
		"TF_CLI_CONFIG_FILE="+writeTemp(tb, "cli.tfrc", []byte(settings)))
	if strings.Contains(strings.Join(slices.Collect(maps.Values(files)), ""), "module \"") {
		p.mustRun("get")
	}
	return p
}

func (p *project) write(name, text string) {
	p.tb.Helper()
	path := filepath.Join(p.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		p.tb.Fatal(err)
	}
}

// state is the file that the last apply left.
func (p *project) state() string {
	p.tb.Helper()
	data, err := os.ReadFile(filepath.Join(p.dir, "terraform.tfstate"))
	if err != nil {
		p.tb.Fatal(err)
	}
	return string(data)
}

func (p *project) setenv(pairs ...string) { p.env = append(p.env, pairs...) }

func (p *project) command(args ...string) *exec.Cmd {
	cmd := exec.Command(cliPath(), slices.Concat(args[:1], []string{"-no-color"}, args[1:])...)
	cmd.Dir, cmd.Env = p.dir, p.env
	return cmd
}

func (p *project) run(args ...string) (string, error) {
	out, err := p.command(args...).CombinedOutput()
	return string(out), err
}

func (p *project) mustRun(args ...string) string {
	p.tb.Helper()
	out, err := p.run(args...)
	if err != nil {
		p.tb.Fatalf("%s: %v\n%s", args[0], err, out)
	}
	return out
}

// wantOutputs applies the configuration and compares its outputs. It reads
// every state once; plugin-testing does so four times.
func (p *project) wantOutputs(want map[string]cty.Value) {
	p.tb.Helper()
	p.mustRun("apply", "-auto-approve")
	p.compareOutputs(want)
}

// compareOutputs compares the outputs of the last apply.
func (p *project) compareOutputs(want map[string]cty.Value) {
	p.tb.Helper()
	cmd := p.command("output", "-json")
	text, err := cmd.Output()
	var outputs map[string]struct {
		Type  cty.Type
		Value json.RawMessage
	}
	if err := errors.Join(err, json.Unmarshal(text, &outputs)); err != nil {
		p.tb.Fatalf("%v\n%s", err, text)
	}
	for name, v := range want {
		if out, ok := outputs[name]; !ok {
			p.tb.Errorf("there is no output %q", name)
		} else if err := compareOutput(name, out.Type, out.Value, v); err != nil {
			p.tb.Error(err)
		}
	}
}

// wantError plans, which must fail with these words.
func (p *project) wantError(words ...string) {
	p.tb.Helper()
	if out, err := p.run("plan"); err == nil || !says(words...).MatchString(out) {
		p.tb.Errorf("got %v, want an error that says %q:\n%s", err, words, out)
	}
}

// stateServer is a server that records what it is asked.
type stateServer struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
}

func serve(tb testing.TB, start func(http.Handler) *httptest.Server, h http.HandlerFunc) *stateServer {
	tb.Helper()
	s := &stateServer{}
	s.Server = start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.Clone(context.WithoutCancel(r.Context())))
		s.mu.Unlock()
		h(w, r)
	}))
	tb.Cleanup(s.Close)
	return s
}

// asked returns the requests so far, and forgets them.
func (s *stateServer) asked() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.requests
	s.requests = nil
	return out
}

func gives(data []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }
}

// isolateGit hides the user's git settings from a test in this process.
func isolateGit(t *testing.T) {
	t.Helper()
	keep := map[string]string{}
	for _, pair := range os.Environ() {
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "TF_ACC") || name == "TF_CLI_CONFIG_FILE" {
			keep[name] = value
		}
	}
	gittest.Isolate(t)
	for name, value := range keep {
		t.Setenv(name, value)
	}
}

func resourceStep(config string, checks ...statecheck.StateCheck) resource.TestStep {
	return resource.TestStep{Config: config, ConfigStateChecks: checks}
}

// stateHolds looks for a text anywhere in the state.
type stateHolds struct {
	text string
	want bool
}

func (s stateHolds) CheckState(_ context.Context, req statecheck.CheckStateRequest, resp *statecheck.CheckStateResponse) {
	data, err := json.Marshal(req.State)
	if err != nil {
		resp.Error = err
	} else if got := bytes.Contains(data, []byte(s.text)); got != s.want {
		resp.Error = fmt.Errorf("whether %q is in the state: got %t, want %t", s.text, got, s.want)
	}
}

package builds_test

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	"golang.org/x/mod/semver"

	"github.com/statecrypt/terraform-provider-statecrypt/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
)

// sealing is a configuration that files are encrypted with. The method is m.
type sealing struct {
	text   string
	method string // kind of m; aes_gcm when empty
	since  string // the release that had it first, if that is not the first of all
}

// leftOut are the kinds that no row of sealings has.
var leftOut = map[string]string{
	"aws_kms": "asks a service", "gcp_kms": "asks a service", "azure_vault": "asks a service", "openbao": "asks a service",
	"unencrypted": "seals nothing", "kubeform": "seals nothing", "terraform_backend_git": "seals nothing", "sops": "seals nothing",
}

// sealings are all key providers and methods that need no service, by themselves and
// together.
func sealings(t *testing.T) map[string]sealing {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	const quick = "passphrase = \"a passphrase for one test\"\niterations = 200000\n"
	key := func(address, body string) string {
		kind, name, _ := strings.Cut(address, ".")
		return fmt.Sprintf("key_provider %q %q {\n%s}\n", kind, name, body)
	}
	aesGCM := func(keys string) string { return "method \"aes_gcm\" \"m\" {\nkeys = key_provider." + keys + "\n}\n" }
	static := key("static.k", "key = \""+strings.Repeat("0f", 32)+"\"\n")
	recipient := fmt.Sprintf("recipients = [%q]\nidentities = [%q]\n", identity.Recipient().String(), identity.String())

	all := map[string]sealing{
		"pbkdf2": {text: key("pbkdf2.k", quick) + aesGCM("pbkdf2.k")},
		"pbkdf2, other parameters": {text: key("pbkdf2.k", quick+"hash_function = \"sha256\"\nkey_length = 16\nsalt_length = 8\n"+
			"encrypted_metadata_alias = \"main\"\n") + aesGCM("pbkdf2.k\naad = [112, 117, 98]")},
		"pbkdf2, chained": {text: static + key("pbkdf2.k", "chain = key_provider.static.k\niterations = 200000\n") + aesGCM("pbkdf2.k")},
		"static":          {text: static + aesGCM("static.k")},
		"xor": {text: static + key("pbkdf2.k", quick) + key("xor.k", "a = key_provider.static.k\nb = key_provider.pbkdf2.k\n") +
			aesGCM("xor.k")},
		"age":        {text: key("age.k", recipient) + aesGCM("age.k")},
		"age method": {text: "method \"age\" \"m\" {\n" + recipient + "}\n", method: "age"},
	}
	if runtime.GOOS == "windows" {
		return all // the programs are scripts for sh
	}
	keys := t.TempDir()
	for name, content := range map[string]string{"current": "k", "k": base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{3}, 32))} {
		if err := os.WriteFile(filepath.Join(keys, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := func(path string) string {
		path, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	all["external"] = sealing{text: key("external.k", fmt.Sprintf("command = [\"sh\", %q, %q]\n",
		program("../../../examples/external/key-provider.sh"), keys)) + aesGCM("external.k")}
	method := program("../../../conformance/cases/external_method_no_keys/method.sh")
	all["external method"] = sealing{method: "external", text: fmt.Sprintf("method \"external\" \"m\" {\n"+
		"encrypt_command = [\"sh\", %[1]q, \"encrypt\", \"-\"]\ndecrypt_command = [\"sh\", %[1]q, \"decrypt\", \"-\"]\n}\n", method)}
	return all
}

// TestUpgradeHasAllKinds: a kind is sealed with, or there is a reason why not.
//
// Promise: Earlier releases
func TestUpgradeHasAllKinds(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("some kinds are missing here")
	}
	var all strings.Builder
	for _, s := range sealings(t) {
		all.WriteString(s.text)
	}
	check := func(sort, kind string) {
		t.Helper()
		if used := strings.Contains(all.String(), fmt.Sprintf("%s %q ", sort, kind)); used == (leftOut[kind] != "") {
			t.Errorf("%s %q: used is %t, and left out because it %q", sort, kind, used, leftOut[kind])
		}
	}
	for _, b := range builtin.Registry().KeyProviders {
		check("key_provider", b.Name)
	}
	for _, b := range builtin.Registry().Methods {
		check("method", b.Name)
	}
}

// TestUpgrade: what the command and the library of any earlier release encrypted, those of
// today open. Before the first release, and in a clone without tags, what is committed
// takes its place, so that all of this works when there is one.
//
// Promise: Earlier releases
func TestUpgrade(t *testing.T) {
	needGo(t)
	t.Parallel()
	all := sealings(t)
	for _, revision := range revisions(t) {
		t.Run(revision, func(t *testing.T) {
			command, library := earlier(t, revision)
			for _, name := range slices.Sorted(maps.Keys(all)) {
				s := all[name]
				if revision != "HEAD" && semver.Compare(revision, s.since) < 0 {
					continue
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					upgrade(t, s, command, library)
				})
			}
		})
	}
}

// TestSuiteVersion: a version of the suite in conformance/ has the same cases in all
// releases.
func TestSuiteVersion(t *testing.T) {
	t.Parallel()
	today, err := os.ReadFile("../../../conformance/VERSION")
	if err != nil {
		t.Fatal(err)
	}
	for _, revision := range revisions(t) {
		then, err := git(t, "show", revision+":conformance/VERSION")
		if err != nil {
			t.Fatal(err)
		}
		number, _, _ := bytes.Cut(then, []byte(" "))
		if revision != "HEAD" && bytes.HasPrefix(today, append(number, ' ')) && !bytes.Equal(today, then) {
			t.Errorf("%s has other cases in version %s of the suite: raise it", revision, number)
		}
	}
}

const upgradeState = `{"version":4,"terraform_version":"1.12.6","serial":41,"lineage":"a-lineage","outputs":{"o":{"value":"canary",` +
	`"type":"string"}},"resources":[],"check_results":null}`

// upgrade has the programs of an earlier revision seal files, and opens them.
func upgrade(t *testing.T, s sealing, command, library string) {
	t.Helper()
	method := s.method
	if method == "" {
		method = "aes_gcm"
	}
	text := s.text
	for _, target := range []string{"state", "plan"} {
		text += fmt.Sprintf("%s {\nmethod = method.%s.m\n}\n", target, method)
	}
	enc, err := encryption.Load(builtin.Registry(), encryption.Code(text, "settings.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(t.TempDir(), "settings.hcl")
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		target encryption.Target
		plain  []byte
		flags  []string
	}{
		{"state", enc.State(), []byte(upgradeState), nil},
		{"plan", enc.Plan(), planFile(t), []string{"-plan"}},
	} {
		for program, cmd := range map[string]*exec.Cmd{
			"command": exec.CommandContext(t.Context(), command, append([]string{"encrypt", "-config", settings}, c.flags...)...),
			"library": exec.CommandContext(t.Context(), library, c.name),
		} {
			var stderr strings.Builder
			cmd.Stdin, cmd.Stderr, cmd.Env = bytes.NewReader(c.plain), &stderr, append(os.Environ(), "TF_ENCRYPTION="+text)
			sealed, err := cmd.Output()
			if err != nil || bytes.Contains(sealed, c.plain) || len(sealed) == 0 {
				t.Errorf("%s, by the %s: %v, %s%.100q", c.name, program, err, stderr.String(), sealed)
				continue
			}
			opened, err := c.target.Decrypt(t.Context(), sealed)
			if err != nil || !bytes.Equal(opened.Data, c.plain) || !opened.Encrypted {
				t.Errorf("%s, sealed by the %s, does not open: %v", c.name, program, err)
			}
		}
	}
}

// planFile has what makes a file a plan.
func planFile(t *testing.T) []byte {
	t.Helper()
	var file bytes.Buffer
	archive := zip.NewWriter(&file)
	for _, name := range []string{"tfplan", "tfstate"} {
		member, err := archive.Create(name)
		if err == nil {
			_, err = member.Write([]byte("the member " + name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

var releaseTag = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+`)

// revisions are the tags of all releases, in their order, or else HEAD.
func revisions(t *testing.T) []string {
	t.Helper()
	if prefix, err := git(t, "rev-parse", "--show-prefix"); err != nil || len(bytes.TrimSpace(prefix)) > 0 {
		t.Skipf("this tree is no clone, so nothing earlier is at hand: %v", err)
	}
	tags, err := git(t, "tag", "--list", "v*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"refs/tags", "packed-refs"} {
		_, _ = os.Stat("../../../.git/" + path) // so that a new tag is a reason for the go command to run this again
	}
	all := slices.DeleteFunc(strings.Fields(string(tags)), func(tag string) bool { return !releaseTag.MatchString(tag) })
	if len(all) == 0 {
		return []string{"HEAD"}
	}
	semver.Sort(all)
	return all
}

// git runs in the root of this tree.
func git(t *testing.T, args ...string) ([]byte, error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "git", args...)
	c.Dir = "../../.."
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.String())
	}
	return out, err
}

// earlier builds the programs of a revision in a folder of its own.
func earlier(t *testing.T, revision string) (command, library string) {
	t.Helper()
	content, err := git(t, "archive", "--format=zip", revision)
	if err != nil {
		t.Fatal(err)
	}
	files, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	source, bin := t.TempDir(), t.TempDir()
	if err := os.CopyFS(source, files); err != nil {
		t.Fatal(err)
	}
	programs := [2]string{filepath.Join(bin, "statecrypt.exe"), filepath.Join(bin, "sealer.exe")}
	for i, folder := range []string{"./cmd/statecrypt", "./internal/testing/builds/testdata/sealer"} {
		goTool(t, source, []string{"CGO_ENABLED=0", "GOWORK="}, "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w",
			"-o", programs[i], folder)
	}
	return programs[0], programs[1]
}

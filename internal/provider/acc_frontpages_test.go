package provider

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gittest"
)

// firstLines are the most lines that the first example of the index may have.
const firstLines = 20

// TestAccFrontPage runs the first file of the index, which is complete, as it is printed, with the
// commands beside it, and also without its settings, which TF_ENCRYPTION has.
func TestAccFrontPage(t *testing.T) {
	needAcceptance(t)
	if runtime.GOOS == "windows" {
		t.Skip("the commands are for sh")
	}
	text := readText(t, filepath.Join("..", "..", "docs", "index.md"))
	file, commands := blocksOf(text, "terraform")[0], blocksOf(text, "sh")
	if demo := readText(t, filepath.Join("..", "..", "examples", "demo", "main.tf")); file != demo || strings.Count(file, "\n") > firstLines {
		t.Fatalf("the index does not begin with examples/demo/main.tf, or it has more than %d lines:\n%s", firstLines, file)
	}
	for name, c := range map[string]struct{ file, commands string }{
		"a passphrase":  {forThisCLI(file), commands[0]},
		"TF_ENCRYPTION": {strings.Replace(file, firstSettings(t), "", 1), commands[1]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, map[string]string{"main.tf": c.file,
				"network.tfstate": readText(t, filepath.Join("..", "..", "examples", "demo", "network.tfstate"))})
			p.wantFirst(c.commands, `vpc_id = "vpc-0a1b2c3d4e5f"`)
		})
	}
}

// wantFirst runs commands of a page as someone does who pastes them and answers
// "yes", and wants an output. The provider is there already, so init has nothing to do.
func (p *project) wantFirst(commands, want string) {
	p.tb.Helper()
	apply := p.command("apply")
	cmd := exec.CommandContext(p.tb.Context(), "sh", "-euc", `terraform() { [ "$1" = init ] || "$CLI" "$@"; }`+"\n"+commands)
	cmd.Dir, cmd.Env, cmd.Stdin = apply.Dir, append(apply.Env, "CLI="+apply.Path, "TF_INPUT=1"), strings.NewReader("yes\n")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), want) {
		p.tb.Errorf("got %v:\n%s", err, out)
	}
}

// blocksOf are the blocks of code of a page.
func blocksOf(page, language string) []string {
	var blocks []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(page, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// firstSettings are the variable and the provider block of the first example.
func firstSettings(t *testing.T) string {
	t.Helper()
	demo := readText(t, filepath.Join("..", "..", "examples", "demo", "main.tf"))
	begin, end := strings.Index(demo, "variable "), strings.Index(demo, "data ")
	return demo[begin:end]
}

// forThisCLI is an example as the index says that it is to be written for a CLI
// without ephemeral variables.
func forThisCLI(example string) string {
	if knowsEphemeral() {
		return example
	}
	return strings.ReplaceAll(example, "ephemeral = true", "sensitive = true")
}

// The first settings read a state that is in S3, in git or in a file, and so does
// TF_ENCRYPTION without a provider block.
func TestAccFirst(t *testing.T) {
	needAcceptance(t)
	t.Parallel()
	environment := readText(t, filepath.Join("..", "..", "examples", "first", "s3", "main.tf"))
	if strings.Contains(environment, "provider \"") {
		t.Errorf("the example has a provider block:\n%s", environment)
	}
	state := []byte(sealExample(t, guideState))
	repo := gittest.NewRepo(t, gittest.RepoOptions{})
	repo.Commit("refs/heads/main", gittest.File{Path: "network/terraform.tfstate", Data: string(state)})
	s3 := environment // the data source of the example, and its output
	others := reads("git", fromGit(repo.FileURL(), "main", "network/terraform.tfstate")) +
		reads("file", fromFile(writeTemp(t, "terraform.tfstate", state))) +
		output("git", "data.statecrypt_remote_state.git.outputs.vpc_id") +
		output("file", "data.statecrypt_remote_state.file.outputs.vpc_id") +
		output("with", "data.statecrypt_remote_state.file.decrypted_with")
	want := map[string]cty.Value{"vpc_id": cty.StringVal("vpc-1"), "git": cty.StringVal("vpc-1"), "file": cty.StringVal("vpc-1"),
		"with": cty.StringVal("method.aes_gcm.main")}
	for name, c := range map[string]struct{ provider, env string }{
		"passphrase": {provider: forThisCLI(firstSettings(t))},
		"environment": {env: "TF_ENCRYPTION=key_provider \"pbkdf2\" \"main\" { passphrase = \"the example's passphrase\" }\n" +
			"method \"aes_gcm\" \"main\" { keys = key_provider.pbkdf2.main }\nstate { method = method.aes_gcm.main }"},
		"a whole file": {provider: "provider \"statecrypt\" {\nencryption = file(\"${path.module}/versions.txt\")\n}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"settings.tf": configuration(c.provider), "s3.tf": s3, "others.tf": others}
			s := storeFirst(t, state)
			if name == "a whole file" {
				s.files = map[string]string{"versions.txt": "terraform {\n  required_version = \">= 1.8\"\n  encryption {\n" +
					"    key_provider \"pbkdf2\" \"main\" { passphrase = \"the example's passphrase\" }\n" +
					"    method \"aes_gcm\" \"main\" { keys = key_provider.pbkdf2.main }\n    state { method = method.aes_gcm.main }\n  }\n}\n"}
			}
			p := s.project(t, files)
			if c.env != "" {
				p.setenv(c.env)
			}
			p.wantOutputs(want)
		})
	}
}

// storeFirst is the bucket of the first examples, with keys in the environment.
func storeFirst(t *testing.T, state []byte) store {
	t.Helper()
	return store{
		hosts: map[string]http.Handler{
			"acme-states.s3.eu-west-1.amazonaws.com": bucket(t, "acme-states", "network/terraform.tfstate", state)},
		env: []string{"AWS_ACCESS_KEY_ID=AKIATEST", "AWS_SECRET_ACCESS_KEY=canary"},
	}
}

// What an ephemeral resource reads goes on to a provider block, and is not stored.
func TestAccFirstEphemeral(t *testing.T) {
	needAcceptance(t)
	if !knowsEphemeral() {
		t.Skip("this CLI has no ephemeral values")
	}
	t.Parallel()
	first := `ephemeral "statecrypt_remote_state" "database" {
  s3 {
    bucket = "acme-states"
    key    = "database/terraform.tfstate"
    region = "eu-west-1"
  }
}

provider "statecrypt" {
  alias = "database"

  key_provider {
    pbkdf2 { passphrase = ephemeral.statecrypt_remote_state.database.sensitive_outputs.password }
  }
}
`
	second := "data \"statecrypt_remote_state\" \"other\" {\nprovider = statecrypt.database\n" + fromFile("other.tfstate") + "\n}\n" +
		output("vpc_id", "data.statecrypt_remote_state.other.outputs.vpc_id")
	s := storeFirst(t, nil)
	state := strings.ReplaceAll(databaseState, "canary-password", "canary of 16 bytes or more")
	s.hosts["acme-states.s3.eu-west-1.amazonaws.com"] = bucket(t, "acme-states", "database/terraform.tfstate", []byte(sealExample(t, state)))
	s.files = map[string]string{"other.tfstate": string(sealedAs(t, `key_provider "pbkdf2" "main" { passphrase = "canary of 16 bytes or more" }
method "aes_gcm" "main" { keys = key_provider.pbkdf2.main }
state { method = method.aes_gcm.main }`, guideState))}
	p := s.project(t, map[string]string{"settings.tf": configuration(firstSettings(t)), "main.tf": first + second})
	p.wantOutputs(map[string]cty.Value{"vpc_id": cty.StringVal("vpc-1")})
	if stored := readText(t, filepath.Join(p.dir, "terraform.tfstate")); strings.Contains(stored, "canary") {
		t.Errorf("a secret is stored:\n%s", stored)
	}
}

// The examples of the guide on tests run, each in the CLI's own test command.
func TestAccTestingExamples(t *testing.T) {
	needAcceptance(t)
	if cliMinor() < 8 {
		t.Skip("this CLI cannot replace what data sources read in tests")
	}
	t.Parallel()
	for folder, want := range map[string]string{".": "3 passed, 0 failed", "ephemeral": "2 passed, 0 failed"} {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			if folder != "." && !knowsEphemeral() {
				t.Skip("this CLI has no ephemeral values")
			}
			if out := newProject(t, testedModule(t, folder)).mustRun("test"); !strings.Contains(out, want) {
				t.Errorf("got %s", out)
			}
		})
	}
}

// TestAccCannotMock: Terraform's words on what it cannot mock are those of the guide.
func TestAccCannotMock(t *testing.T) {
	needAcceptance(t)
	if isTofu() || !knowsEphemeral() || cliMinor() > 15 {
		t.Skip("the guide quotes Terraform 1.10 to 1.15")
	}
	t.Parallel()
	for name, c := range map[string]struct {
		test string
		says []string
	}{
		"mocked": {"mock_provider \"statecrypt\" {}\nrun \"it\" {\ncommand = plan\n}\n",
			[]string{"Error: No ephemeral resource types in mock providers",
				"The provider mocking mechanism does not yet support ephemeral resource types."}},
		"overridden": {"run \"it\" {\ncommand = plan\noverride_data {\ntarget = ephemeral.statecrypt_remote_state.database\n" +
			"values = {}\n}\n}\n",
			[]string{"Error: Invalid override target", "You can only target data sources from override_data blocks, not",
				"ephemeral.statecrypt_remote_state.database."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := testedModule(t, "ephemeral")
			files["file.tftest.hcl"] = c.test
			out, err := newProject(t, files).run("test")
			if err == nil {
				t.Errorf("the test passes: %s", out)
			}
			guide := readText(t, filepath.Join("..", "..", "templates", "guides", "testing-modules.md.tmpl"))
			if !says(c.says...).MatchString(out) {
				t.Errorf("Terraform does not say %q:\n%s", c.says, out)
			}
			if summary := strings.TrimPrefix(c.says[0], "Error: "); !says(summary).MatchString(guide) {
				t.Errorf("the guide does not say %q", summary)
			}
		})
	}
}

// testedModule has the files of a module in the guide on tests, and its tests.
func testedModule(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	dir := filepath.Join("..", "..", "examples", "testing", folder)
	for _, pattern := range []string{"*.tf", "*.hcl", filepath.Join("testdata", "*")} {
		for _, path := range glob(t, filepath.Join(dir, pattern)) {
			name, err := filepath.Rel(dir, path)
			if err != nil {
				t.Fatal(err)
			}
			files[name] = readText(t, path)
		}
	}
	return files
}

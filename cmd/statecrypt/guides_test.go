package main

import (
	"cmp"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// bucket is an "aws s3" whose buckets are folders.
const bucket = `#!/bin/sh
case $2 in
ls) find states -type f | sort | sed 's/^/2026-01-01 00:00:00          1 /; s/states\///' ;;
cp) cat "${3#s3://}" ;;
esac
`

// The commands of the guides run as they are printed.
func TestGuides(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the guides derive many keys")
	}
	bin := filepath.Dir(built(t))
	const shared = "../../examples/guides/"
	environ := append(world.World{}.Environ().Pairs(), "TF_VAR_plan_passphrase=a passphrase for plans",
		"TF_VAR_passphrase_2025=a passphrase of 2025",
		"TF_VAR_passphrase_2026=a passphrase of 2026", "TF_VAR_readers_passphrase=a passphrase for readers",
		"TF_VAR_old_passphrase="+conformance.Get("tbg_aes").BackendEnv["TF_BACKEND_HTTP_ENCRYPTION_PASSPHRASE"])
	environ = slices.Clip(environ) // each guide adds to it, at the same time

	// Each makes a folder, and follows the guide there.
	type follow func(dir string, environ []string) (printed string)
	guides := map[string]func(t *testing.T, follow follow){}
	guides["rotating-and-converting"] = func(t *testing.T, follow follow) {
		dir := guideFolder(t, "rotating-and-converting")
		in := func(name string) string { return filepath.Join(dir, name) }
		if err := os.MkdirAll(in(".config/sops/age"), 0o700); err != nil {
			t.Fatal(err)
		}
		state := strings.Replace(plain, `"n":`, `"vpc_id":{"value":"vpc-1","type":"string"},"n":`, 1)
		var out strings.Builder
		if code := run(t.Context(), []string{"encrypt", "-config", in("old.hcl")}, strings.NewReader(state), &out, &out, environ); code != 0 {
			t.Fatal(out.String())
		}
		write(t, in("network.tfstate"), out.String())
		write(t, in("sops.tfstate"), read(t, "../../conformance/cases/tbg_sops_age/state.raw"))
		write(t, in(".config/sops/age/keys.txt"), read(t, "../../conformance/cases/tbg_sops_age/age_identity.txt"))
		write(t, in("tbg.tfstate"), string(conformance.Get("tbg_aes").State()))

		follow(dir, append(environ, "HOME="+dir, "PATH="+bin+":"+os.Getenv("PATH")))
		for _, name := range []string{"network.tfstate", "sops.tfstate", "tbg.tfstate"} {
			opens(t, environ, in("new.hcl"), in(name), `"version":`)
		}
		if got := opens(t, environ, in("readers.hcl"), in("network-outputs.tfstate"), `"vpc-1"`); strings.Contains(got, canary) {
			t.Errorf("readers get %s", got)
		}
	}
	guides["looking-at-states"] = func(t *testing.T, follow follow) {
		sealed := func(state string) string {
			return must(t, keysOf("a passphrase of Friday"), state, "encrypt")
		}
		bad := strings.NewReplacer(`"serial":7`, `"serial":8`, `{"mode":"managed","type":"x","name":"y","provider":"p","instances":[{"attributes":`+
			`{"id":"c4n4ry"}}]}`, "").Replace(plain)
		dir := inFolder(t, keysOf("a passphrase of Friday"), map[string]string{"net.tfstate": sealed(bad), "net.tfstate.backup": sealed(plain)})
		printed := follow(dir, append(environ, "HOME="+dir, "PATH="+bin+":"+os.Getenv("PATH")))
		if !strings.Contains(printed, "resources: 1 removed\n  - x.y\n") || !strings.Contains(printed, "with serial 9") ||
			strings.Contains(printed, canary) {
			t.Errorf("it prints %s", printed)
		}
		keys := filepath.Join(dir, "keys.hcl")
		opens(t, environ, keys, filepath.Join(dir, "net.tfstate"), strings.Replace(plain, `"serial":7`, `"serial":9`, 1))
		opens(t, environ, keys, filepath.Join(dir, "net.tfstate.backup"), bad)
	}
	guides["reviewing-encrypted-states"] = func(t *testing.T, follow follow) {
		root := t.TempDir() // of the repository, in which the module is a folder
		dir := filepath.Join(root, "infra")
		if err := os.CopyFS(dir, os.DirFS(shared+"reviewing-encrypted-states")); err != nil {
			t.Fatal(err)
		}
		in := func(name string) string { return filepath.Join(dir, name) }
		makeBucket(t, dir)
		environ := append(environ, "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1", "PATH="+in("bin")+":"+bin+":"+os.Getenv("PATH"))
		git := func(wanted bool, args ...string) string {
			t.Helper()
			cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=u", "-c", "user.email=u@example.com"}, args...)...)
			cmd.Dir, cmd.Env = dir, environ
			out, err := cmd.CombinedOutput()
			if (err == nil) != wanted {
				t.Fatalf("git %s: %v\n%s", args[0], err, out)
			}
			return string(out)
		}
		sealed := func(state string) string {
			var out strings.Builder
			if code := run(t.Context(), []string{"encrypt", "-config", in("keys.hcl")}, strings.NewReader(state), &out, &out, environ); code != 0 {
				t.Fatal(out.String())
			}
			return out.String()
		}
		git(true, "init", "-q", "-b", "main", root)
		write(t, in("network.tfstate"), sealed(plain))
		git(true, "add", "network.tfstate")
		git(true, "commit", "-q", "-m", "one")
		write(t, in("network.tfstate"), sealed(strings.Replace(plain, `"n":`, `"vpc_id":{"value":"vpc-1","type":"string"},"n":`, 1)))
		for name, state := range map[string]string{"right": sealed(plain), "a/plain": plain, "other": must(t, onlyOld, plain, "encrypt")} {
			write(t, in("states/"+name), state)
		}
		out := follow(dir, environ)
		if !strings.Contains(out, "\n-outputs: 2\n+outputs: 3\n") || !strings.Contains(out, "\n+  vpc_id: string\n") ||
			strings.Contains(out, "vpc-1") || strings.Contains(out, canary) {
			t.Errorf("git diff prints %s", out)
		}
		git(true, "checkout", "-q", "-b", "topic")
		write(t, in("network.tfstate"), sealed(strings.NewReplacer(`"resources":[`, `"resources":[{"mode":"managed","type":"aws_vpc","name":"new",`+
			`"instances":[{}]},`, `{"id":"c4n4ry"}`, `{"id":"c4n4ry-2"}`).Replace(plain)))
		git(true, "commit", "-q", "-a", "-m", "a new resource")
		git(true, "checkout", "-q", "main")
		compared, err := script(t, blocks(t, "reviewing-encrypted-states", "text")[0], dir, environ)
		if err != nil || compared != "resources: 1 added, 1 changed\n  + aws_vpc.new\n  ~ x.y: id\n" {
			t.Errorf("a new resource: %v\n%s", err, compared)
		}
		if got := read(t, in("not-encrypted.txt")); got != "a/plain\n" {
			t.Errorf("not encrypted: %q", got)
		}
		if got := read(t, in("another-key.txt")); got != "a/plain\nother\n" {
			t.Errorf("with another key: %q", got)
		}
		write(t, in("network.tfstate"), sealed(plain))
		git(true, "commit", "-q", "-a", "-m", "an encrypted one")
		write(t, in("étage 2.tfstate"), read(t, in("network.tfstate")))
		git(true, "add", "étage 2.tfstate")
		git(true, "commit", "-q", "-m", "another encrypted one")
		write(t, in("network.tfstate"), plain)
		if out := git(false, "commit", "-q", "-a", "-m", "a plain one"); !strings.Contains(out, "network.tfstate is not an encrypted state") {
			t.Errorf("the hook says %s", out)
		}
		for name, content := range map[string]string{
			"errored.tfstate.json": plain, "tfplan": emptyPlan(t), "cut.tfstate": sealed(plain)[:100], "empty.tfstate.backup": "",
			" we\"ird\\ name.json": plain, "bom.json": "\xef\xbb\xbf" + plain, "more.json": plain + "x", "cut.json": plain[:len(plain)/2],
			"cut": emptyPlan(t)[:60],
		} {
			write(t, in(name), content)
			git(true, "add", name)
			out := git(false, "commit", "-q", "-m", "another plain one", "--", name)
			if !strings.Contains(out, "infra/"+name+" is not an encrypted state") {
				t.Errorf("the hook says %s", out)
			}
			git(true, "rm", "-q", "-f", "--", name)
		}
		write(t, in("readme.tfstate.txt"), "how states are kept")
		git(true, "add", "readme.tfstate.txt")
		git(true, "commit", "-q", "-m", "a text", "--", "readme.tfstate.txt")
		ci := "set +euo pipefail\n" + blocks(t, "reviewing-encrypted-states", "sh")[2] // in a shell that forgives
		if out, err := script(t, ci, dir, append(environ, "PATH="+os.Getenv("PATH"))); err == nil {
			t.Errorf("without the command, CI goes on: %s", out)
		}
		git(true, "init", "-q", in("module"))
		git(true, "-C", "module", "commit", "-q", "--allow-empty", "-m", "of a submodule")
		for link, to := range map[string]string{"folder": "states", "dangling": "nowhere"} {
			if err := os.Symlink(to, in(link)); err != nil {
				t.Fatal(err)
			}
		}
		write(t, in("broken.json"), `{"a":`)
		write(t, in("-notes"), "a name that a command takes for a flag")
		git(true, "-c", "advice.addEmbeddedRepo=false", "add", "--", "module", "folder", "dangling", "broken.json", "-notes")
		git(true, "commit", "-q", "-m", "no states")
		git(true, "checkout", "-q", "network.tfstate")
		if out, err := script(t, ci, dir, environ); err != nil {
			t.Errorf("CI fails: %v, %s", err, out)
		}
		write(t, in("network.tfstate"), plain)
		git(true, "commit", "-q", "--no-verify", "-a", "-m", "a plain one")
		if out, err := script(t, ci, dir, environ); err == nil || !strings.Contains(out, `{"file":"network.tfstate","kind":"state"`) {
			t.Errorf("CI does not find a plain state: %v, %s", err, out)
		}
	}
	guides["old-state-formats"] = func(t *testing.T, follow follow) {
		program := testkit.Program(t, "STATECRYPT_TOFU")
		dir, programs := t.TempDir(), t.TempDir()
		if err := os.Symlink(program, filepath.Join(programs, "tofu")); err != nil {
			t.Skip(err)
		}
		const old = `{"version":3,"terraform_version":"0.11.14","serial":7,"lineage":"l","modules":[{"path":["root"],"outputs":` +
			`{"vpc_id":{"type":"string","value":"vpc-1"}},"resources":{"null_resource.a":{"type":"null_resource","depends_on":[],"primary":` +
			`{"id":"1","attributes":{"id":"1"},"meta":{},"tainted":false},"deposed":[],"provider":"provider.null"}},"depends_on":[]}]}`
		keys, file := write(t, filepath.Join(dir, "keys.hcl"), onlyNew), filepath.Join(dir, "network.tfstate")
		write(t, file, must(t, onlyNew, old, "encrypt"))
		out := follow(dir, append(environ, "HOME="+dir, "TF_CLI_CONFIG_FILE="+os.DevNull, "CHECKPOINT_DISABLE=1", "TF_CLI_ARGS=-no-color",
			"PATH="+programs+":"+bin+":"+os.Getenv("PATH")))
		opens(t, environ, keys, file, `"version":4`)
		if got := opens(t, environ, keys, file, `"serial":8`); !strings.Contains(got, `registry.opentofu.org/hashicorp/null`) ||
			!strings.Contains(got, `"vpc-1"`) || !strings.Contains(out, "null_resource.a") {
			t.Errorf("it prints %s, and is %s", out, got)
		}
	}
	guides["troubleshooting"] = func(t *testing.T, follow follow) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "keys.hcl"), onlyNew)
		write(t, filepath.Join(dir, "network.tfstate"), must(t, onlyNew, plain, "encrypt"))
		follow(dir, append(environ, "HOME="+dir, "PATH="+bin+":"+os.Getenv("PATH")))
	}
	guides["keys-for-a-team"] = func(t *testing.T, follow follow) {
		c := tofu(t, configuration)
		if err := os.CopyFS(c.dir, os.DirFS(shared+"keys-for-a-team")); err != nil {
			t.Fatal(err)
		}
		programs := t.TempDir()
		keygen := exec.Command("go", "build", "-trimpath", "-o", programs+string(filepath.Separator), "filippo.io/age/cmd/age-keygen")
		keygen.Env = append(os.Environ(), "CGO_ENABLED=0") // as other tests build, so that it was compiled already
		if out, err := keygen.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if err := os.Symlink(c.path, filepath.Join(programs, "tofu")); err != nil {
			t.Fatal(err)
		}
		bin := withPlugins(t)
		alice, alices := identity(t, "x25519.key")
		write(t, c.file("alice.txt"), read(t, alice))
		environ := append(environ, "ALICES_RECIPIENT="+alices, "HOME="+c.dir, "TF_CLI_CONFIG_FILE="+os.DevNull, "CHECKPOINT_DISABLE=1",
			"PATH="+programs+":"+bin+":"+os.Getenv("PATH"))
		follow(c.dir, environ)
		if state := read(t, c.file("terraform.tfstate")); strings.Contains(state, canary) {
			t.Errorf("it is not encrypted: %s", state)
		}
		alices = strings.NewReplacer("key.txt", c.file("alice.txt"), "team.txt", c.file("team.txt")).Replace(read(t, c.file("team.hcl")))
		opens(t, environ, write(t, c.file("alice.hcl"), alices), c.file("terraform.tfstate"), canary+" of a resource")
		yubikey := strings.Replace(read(t, c.file("team.hcl")), "key.txt", "yubikey.txt", 1)
		write(t, c.file("yubikey.hcl"), yubikey)
		if out, err := script(t, "statecrypt verify -config yubikey.hcl terraform.tfstate", c.dir, environ); err != nil {
			t.Errorf("with the plugin: %s", out)
		}
	}
	guides["pipelines"] = func(t *testing.T, follow follow) {
		r := newRunner(t, bin)
		r.program(t, "checkov", `[ "$1" = -f ] && grep -q '"planned_values"' "$2" && echo scanned`)
		write(t, r.file("plans.hcl"), read(t, pipelines+"passphrase.hcl"))
		r.environ = append(r.environ, "TF_ENCRYPTION=", "TF_VAR_plan_passphrase=a passphrase for plans")
		r.must(t, "terraform plan -out=tfplan")
		before := blocks(t, "pipelines", "shell") // that the plan is encrypted; the last one is for wrap
		for at, says := range []string{created, "scanned\n"} {
			if out := r.must(t, before[at]); !strings.Contains(out, says) || strings.Contains(out, canary) {
				t.Errorf("%s prints %s", before[at], out)
			}
		}
		module := guideFolder(t, "wrap-in-ci")
		write(t, filepath.Join(module, "main.tf"), "terraform {\n  backend \"http\" {}\n}\n")
		without := append(world.World{}.Environ().Pairs(), "HOME="+module, "PATH="+bin+":"+filepath.Dir(r.path)+":"+os.Getenv("PATH"))
		if out, err := script(t, before[2], module, without); err != nil || !strings.Contains(out, "The configuration is valid") {
			t.Errorf("without a key: %v\n%s", err, out)
		}
		_ = follow(r.dir, r.environ)
		if _, err := os.Stat(r.file("plan.json")); err == nil {
			t.Error("the input of the scanner is still there")
		}
		if got := read(t, r.file("terraform.tfstate")); !strings.Contains(got, canary) {
			t.Errorf("the plan was not applied: %s", got)
		}
		if strings.HasPrefix(read(t, r.file("tfplan")), "PK") {
			t.Error("the plan is not encrypted")
		}
		memory, err := os.MkdirTemp("/dev/shm", "statecrypt-") // which the block has to itself here
		if err != nil {
			return // another system
		}
		defer os.RemoveAll(memory)
		look := blocks(t, "pipelines", "text")[0]
		out, err := script(t, strings.ReplaceAll(look, "/dev/shm", memory), r.dir, r.environ)
		if err != nil || !strings.Contains(out, "will be created") {
			t.Errorf("%v\n%s", err, out)
		}
		if left, err := os.ReadDir(memory); err != nil || len(left) > 0 {
			t.Errorf("this is left: %v, %v", left, err)
		}
	}

	guides["encrypted-state-clouds"] = func(t *testing.T, follow follow) {
		clis := programs(t)
		for name, start := range map[string]func(*testing.T) *guideCloud{"s3": inAmazon, "gcs": inGoogle, "azurerm": inAzure} {
			t.Run(name, func(t *testing.T) {
				c := start(t)
				dir := c.folder(t)
				environ := append(c.environ(environ), "HOME="+dir, "PATH="+clis+":"+bin+":"+os.Getenv("PATH"))
				if out := follow(dir, environ); strings.Count(out, "No changes.") != 2 || !strings.Contains(out, c.name+": encrypted") ||
					strings.Contains(out, "TF_VAR_") {
					t.Errorf("it prints %s", out)
				}
				if got := must(t, keysOf(secondPassphrase), c.get(), "decrypt"); !strings.Contains(got, "hello") {
					t.Errorf("the state is %s", got)
				}
				id := c.hold()
				environ = append(environ, "TF_VAR_state_passphrase="+secondPassphrase)
				for _, command := range []string{"statecrypt wrap -config new.hcl -- terraform plan", "tofu plan"} {
					out, err := script(t, command, dir, environ)
					if err == nil || !strings.Contains(out, "ci@host") || !strings.Contains(out, id) {
						t.Errorf("%s, while it is locked: %v\n%s", command, err, out)
					}
				}
				out, err := script(t, "statecrypt wrap -config new.hcl -- terraform force-unlock -force "+id, dir, environ)
				if err != nil || c.isHeld() {
					t.Errorf("the lock was not released: %v\n%s", err, out)
				}
				for _, data := range c.everything() {
					if strings.Contains(string(data), "hello") {
						t.Errorf("this was stored: %.200s", data)
					}
				}
			})
		}
	}

	for name, run := range guides {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			followed := false
			run(t, func(dir string, environ []string) string {
				t.Helper()
				followed = true
				return runBlocks(t, name, dir, environ)
			})
			if !followed {
				t.Error("nobody runs its commands")
			}
		})
	}
	everyBlockRuns(t, slices.Collect(maps.Keys(guides)))
}

// TestGuideOfGit: the settings of the guide on git find a state there, open it, and seal plans.
func TestGuideOfGit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const passphrase = "state_passphrase=correct-horse-battery-staple"
	_, settings, _ := strings.Cut(blocks(t, "encrypted-state", "hcl")[0], "backend \"file\" {}\n")
	block := strings.Replace(blocks(t, "encrypted-state-git", "hcl")[0], "https://git.example.com/acme/states.git", dir+"/states.git", 1)
	keys := write(t, filepath.Join(dir, "keys.hcl"), block+settings)
	seal := func(text string, more ...string) string {
		return must(t, "", text, append([]string{"encrypt", "-config", keys, "-var", passphrase}, more...)...)
	}
	if err := os.Mkdir(filepath.Join(dir, "net"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "net", "terraform.tfstate"), seal(plain))
	environ := append(world.World{}.Environ().Pairs(), "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1")
	if out, err := script(t, "git init -q -b main .; git add net; git -c user.name=u -c user.email=u@example.com commit -q -m one\n"+
		"git clone -q --bare . states.git", dir, environ); err != nil {
		t.Fatal(out)
	}
	if got := must(t, "", "", "verify", "-backend", "-config", keys, "-var", passphrase); !strings.Contains(got, "ok") {
		t.Errorf("got %s", got)
	}
	if got := seal(emptyPlan(t), "-plan"); !strings.Contains(got, "encrypted_data") {
		t.Errorf("got %s", got)
	}
}

// TestAccFrontPage runs the commands of README in a copy of the demo.
func TestAccFrontPage(t *testing.T) {
	t.Parallel()
	if os.Getenv("TF_ACC") == "" {
		t.Skip("acceptance tests are skipped unless TF_ACC is set")
	}
	cli, err := exec.LookPath(cmp.Or(os.Getenv("TF_ACC_TERRAFORM_PATH"), "terraform"))
	if err != nil {
		t.Skip(err)
	}
	cli, err = filepath.Abs(cli)
	dir, bin := t.TempDir(), filepath.Dir(built(t))
	err = errors.Join(err, os.CopyFS(dir, os.DirFS("../../examples/demo")), os.Symlink(cli, filepath.Join(bin, "terraform")))
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, block := range fence.FindAllStringSubmatch(read(t, "../../README.md"), -1) {
		if block[1] != "sh" {
			continue
		}
		ran++
		out, err := script(t, "(\n"+block[2]+") <<<yes", dir, append(world.World{}.Environ().Pairs(), "CHECKPOINT_DISABLE=1",
			"TF_CLI_ARGS=-no-color", "HOME="+dir, "PATH="+bin+":"+os.Getenv("PATH")))
		if err != nil || !strings.Contains(out, "key_provider.pbkdf2.demo") || !strings.Contains(out, `"vpc-of-the-second-half"`) {
			t.Errorf("%v\n%s", err, out)
		}
	}
	if ran != 1 {
		t.Errorf("README has %d blocks of commands", ran)
	}
}

// programs returns a folder with both CLIs.
func programs(t *testing.T) (bin string) {
	t.Helper()
	tofu := testkit.Program(t, "STATECRYPT_TOFU")
	terraform, err := exec.LookPath("terraform")
	if err != nil {
		t.Skip("terraform is not on PATH")
	}
	bin = t.TempDir()
	for name, path := range map[string]string{"tofu": tofu, "terraform": terraform} {
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Skip(err)
		}
	}
	return bin
}

// keysOf returns settings with one passphrase.
func keysOf(passphrase string) string {
	return "key_provider \"pbkdf2\" \"main\" { passphrase = \"" + passphrase + "\" }\n" +
		"method \"aes_gcm\" \"main\" { keys = key_provider.pbkdf2.main }\nstate { method = method.aes_gcm.main }\n"
}

// makeBucket makes a bucket in a folder.
func makeBucket(t *testing.T, dir string) {
	t.Helper()
	for _, folder := range []string{"bin", "states/a"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "bin/aws"), []byte(bucket), 0o700); err != nil {
		t.Fatal(err)
	}
}

// guideFolder is a folder with a copy of a guide's examples.
func guideFolder(t *testing.T, guide string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../examples/guides/"+guide)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// runBlocks runs all blocks of a guide, each as a script of its own, as a pipeline does,
// and returns what they print.
func runBlocks(t *testing.T, guide, dir string, environ []string) string {
	t.Helper()
	var printed strings.Builder
	all := blocks(t, guide, "sh")
	if len(all) == 0 {
		t.Errorf("%s has no commands", guide)
	}
	for _, block := range all {
		out, err := script(t, block, dir, environ)
		printed.WriteString(out)
		if err != nil {
			t.Fatalf("%s%v\n%s", block, err, out)
		}
	}
	return printed.String()
}

// notRun says why TestGuides does not run a block with commands, by its guide or by how it
// begins.
var notRun = map[string]string{
	"air-gapped":                       "make release-smoke runs it",
	"installing":                       "make release-smoke and TestInstalling run it",
	"encrypted-state":                  "the acceptance tests of wrap run such commands",
	"encrypted-state-http":             "it asks GitLab; the acceptance tests of wrap run such commands",
	"encryption-settings":              "its commands are those of the CLI, which the acceptance tests of its examples run",
	"terraform-reading-opentofu-state": "its commands are those of the CLI, which the acceptance tests of its examples run",
	"go-library":                       "its commands are those of Go",
	"key-provider-azure-vault":         "it asks Azure",
	"source-azurerm":                   "it asks Azure",
	"source-oci":                       "it asks Oracle",

	"statecrypt verify -config new.hcl -lineage 1f6f5a5e-9d2c-4a0e-b4b5-5d3c8f0f6a11": "the lineage is an example; TestPins",
	"statecrypt rotate -from old.hcl -to new.hcl -backend":                            "it has an HTTP backend; TestRotateBackend",
	"(trap 'rm -f /dev/shm/plan' EXIT;":                                               "it runs if there is such a folder",
	"statecrypt diff -config keys.hcl <(git show main:":                               "it runs in a repository with that branch",
	"terraform show -no-color tfplan":                                                 "it runs before the plan is encrypted",
	"trap 'rm -f plan.json' EXIT":                                                     "it runs before the plan is encrypted",
	"statecrypt wrap -config keys.hcl -- terraform fmt":                               "it runs in a module of its own",
	`$env:TF_ENCRYPTION = Get-Content -Raw -Encoding utf8 settings.hcl`:               "PowerShell is on no machine of the tests",
}

var fence = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// theWeek is a guide with what its commands print.
const theWeek = "../../templates/guides/a-week-with-wrap.md.tmpl"

// everyBlockRuns: a block of a guide with commands runs in a test, or has a reason.
func everyBlockRuns(t *testing.T, followed []string) {
	t.Helper()
	pages, err := filepath.Glob("../../templates/guides/*.tmpl")
	if err != nil || len(pages) == 0 {
		t.Fatal(err)
	}
	excused := map[string]bool{}
	for _, page := range pages {
		guide := strings.TrimSuffix(filepath.Base(page), ".md.tmpl")
		for _, block := range fence.FindAllStringSubmatch(read(t, page), -1) {
			switch language, text := block[1], block[2]; {
			case language == "sh" && slices.Contains(followed, guide):
			case page == theWeek: // TestAccWeek plays all of it
			case slices.Contains([]string{"go", "hcl", "terraform", "diff"}, language) || strings.HasPrefix(text, "Error: "):
				// there are no commands in it
			default:
				excuse := guide
				for begins := range notRun {
					if strings.HasPrefix(text, begins) {
						excuse = begins
					}
				}
				if excused[excuse] = true; notRun[excuse] == "" {
					t.Errorf("%s: nobody runs this block:\n%s", guide, text)
				}
			}
		}
	}
	for excuse := range notRun {
		if !excused[excuse] {
			t.Errorf("there is no block for the excuse %s", excuse)
		}
	}
}

// blocks are those of a guide in a language, such as sh for those that run.
func blocks(t *testing.T, guide, language string) (all []string) {
	t.Helper()
	for _, block := range fence.FindAllStringSubmatch(read(t, "../../templates/guides/"+guide+".md.tmpl"), -1) {
		if block[1] == language {
			all = append(all, block[2])
		}
	}
	return all
}

// script is a step of a pipeline.
func script(t *testing.T, text, dir string, environ []string) (printed string, err error) {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("there is no bash, or another one than the guides are for")
	}
	cmd := exec.CommandContext(t.Context(), bash, "-euo", "pipefail", "-c", text)
	cmd.Dir, cmd.Env = dir, environ
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func opens(t *testing.T, environ []string, config, file, want string) string {
	t.Helper()
	var out, problems strings.Builder
	code := run(t.Context(), []string{"decrypt", "-config", config, file}, strings.NewReader(""), &out, &problems, environ)
	if code != 0 || !strings.Contains(out.String(), want) {
		t.Errorf("%s: %d, %s%s", file, code, out.String(), problems.String())
	}
	return out.String()
}

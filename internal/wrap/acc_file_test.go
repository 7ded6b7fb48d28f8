package wrap_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/tfstate"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
)

// inModule is a project whose state is in a file of the module.
func inModule(t *testing.T, backend string) *project {
	t.Helper()
	p := newProject(t, nil, backend)
	p.with.Where.Backend = fileBlock("")
	return p
}

func (p *project) state() string { return filepath.Join(p.dir, "terraform.tfstate") }

// checkFiles looks for the secret of the state in all files.
func (p *project) checkFiles(t *testing.T) {
	t.Helper()
	_ = filepath.Walk(p.dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() || filepath.Ext(path) == ".tf" {
			return err
		}
		if content, err := os.ReadFile(path); err != nil || bytes.Contains(content, []byte(secret)) {
			t.Errorf("%s holds the secret, or: %v", path, err)
		}
		return nil
	})
}

// A state is written to a file, changed, planned and applied, moved, and destroyed; the file and its
// backup are encrypted all the time.
//
// Promise: Only encrypted states
func TestAccFile(t *testing.T) {
	t.Parallel()
	p := inModule(t, empty)
	p.must(t, "init")
	p.must(t, "apply", "-auto-approve")
	if code, err, out := p.wrapped(t, "plan", "-detailed-exitcode"); code != 0 || err != nil {
		t.Errorf("after apply: %d, %v\n%s", code, err, out)
	}
	p.must(t, "state", "mv", "terraform_data.x", "terraform_data.y")
	p.must(t, "state", "mv", "terraform_data.y", "terraform_data.x")
	if out := p.must(t, "output", "-raw", "text"); !strings.HasSuffix(out, secret) {
		t.Errorf("the output is %s", out)
	}
	for _, file := range []string{p.state(), p.state() + ".backup"} {
		if info, err := encryption.Inspect([]byte(read(t, file))); err != nil || info.Kind != encryption.KindEncrypted {
			t.Errorf("%s is %v, %v", file, info.Kind, err)
		}
	}
	p.checkFiles(t)
	p.must(t, "destroy", "-auto-approve")
	p.checkClean(t)
}

// A local state in plaintext is encrypted in its place.
//
// Promise: Only encrypted states
func TestAccFileEncryptExisting(t *testing.T) {
	t.Parallel()
	p := inModule(t, `backend "local" {}`)
	for _, args := range [][]string{{"init"}, {"apply", "-auto-approve"}, {"apply", "-auto-approve", "-var=text=" + secret + "2"}} {
		if code, out := p.bare(t, p.cli, nil, args...); code != 0 {
			t.Fatalf("%d\n%s", code, out)
		}
	}
	write(t, filepath.Join(p.dir, "main.tf"), module(empty))
	code, err, out := p.wrapped(t, "plan")
	if code == 0 || strings.Contains(out, secret) {
		t.Errorf("in plaintext: %d, %v\n%s", code, err, out)
	}
	p.with.Wishes.EncryptExisting = true
	p.must(t, "init")
	p.with.Wishes.EncryptExisting = false
	if code, err, out := p.wrapped(t, "plan", "-detailed-exitcode", "-var=text="+secret+"2"); code != 0 || err != nil {
		t.Errorf("encrypted: %d, %v\n%s", code, err, out)
	}
	p.checkFiles(t)
}

// beside is a folder from which an OpenTofu keeps its state in the same file, by itself.
type beside struct {
	*project
	program string
}

func newBeside(t *testing.T, p *project, program string) *beside {
	t.Helper()
	b := &beside{&project{dir: t.TempDir(), env: p.env}, program}
	write(t, filepath.Join(b.dir, "main.tf"), module(`backend "local" { path = "`+filepath.ToSlash(p.state())+`" }`))
	if code, out := b.tofu(t, "init"); code != 0 {
		t.Fatalf("%d\n%s", code, out)
	}
	return b
}

func (b *beside) tofu(t *testing.T, args ...string) (int, string) {
	t.Helper()
	return b.bare(t, b.program, []string{"TF_ENCRYPTION=" + tofuKeys}, args...)
}

// slowly is a resource that waits while it is made: for whoever writes to a pipe, after another was
// written to.
type slowly struct{ started, goOn string }

func newSlowly(t *testing.T, dir string) slowly {
	t.Helper()
	s := slowly{filepath.Join(t.TempDir(), "started"), filepath.Join(t.TempDir(), "go-on")}
	for _, fifo := range []string{s.started, s.goOn} {
		if out, err := exec.CommandContext(t.Context(), "mkfifo", fifo).CombinedOutput(); err != nil {
			t.Skipf("%v: %s", err, out)
		}
	}
	write(t, filepath.Join(dir, "slow.tf"), `resource "terraform_data" "slow" {
  provisioner "local-exec" { command = "echo > '`+s.started+`'; cat '`+s.goOn+`'" }
}`)
	return s
}

// TestAccFileTurns has the CLI under wrap, OpenTofu by itself and, if it is another OpenTofu, the CLI by itself take
// turns on one file. Each works with the state of each other one, whatever its layout.
//
// Promise: States in stores
func TestAccFileTurns(t *testing.T) {
	testkit.OneIsEnough(t)
	t.Parallel()
	p := inModule(t, empty)
	turns := map[string]func(args ...string) (int, string){"wrap": func(args ...string) (int, string) {
		code, err, out := p.wrapped(t, args...)
		if err != nil {
			t.Errorf("%q: %v", args, err)
		}
		return code, out
	}}
	order := []string{"wrap", "tofu", "wrap"}
	others := map[string]string{"tofu": testkit.Program(t, "STATECRYPT_TOFU")}
	if strings.HasPrefix(filepath.Base(p.cli), "tofu") {
		others["cli"], order = p.cli, append(order, "cli", "tofu", "cli", "wrap")
	}
	p.must(t, "init")
	p.must(t, "apply", "-auto-approve")
	for name, program := range others {
		b := newBeside(t, p, program)
		turns[name] = func(args ...string) (int, string) { return b.tofu(t, args...) }
	}
	for i, name := range order {
		code, out := turns[name]("apply", "-auto-approve", fmt.Sprint("-var=text=", secret, i))
		if code != 0 || !strings.Contains(out, "0 added, 1 changed, 0 destroyed") {
			t.Fatalf("%q, turn %d: %d\n%s", order, i, code, out)
		}
		opened, err := p.target.Decrypt(t.Context(), []byte(read(t, p.state())))
		if err != nil || !opened.Encrypted {
			t.Fatalf("%q, turn %d: %v", order, i, err)
		}
		parsed, err := tfstate.Parse(opened.Data)
		if err != nil {
			t.Fatalf("%q, turn %d: %v", order, i, err)
		}
		got, err := parsed.Outputs["text"].Value()
		if err != nil || !got.RawEquals(cty.StringVal(fmt.Sprint(secret, i))) {
			t.Errorf("%q, turn %d: the output is %#v, %v", order, i, got, err)
		}
	}
	p.checkFiles(t)
}

// While the CLI under wrap works, OpenTofu says who has the lock, or waits, and then works with what
// was written.
//
// Promise: States in stores
func TestAccFileTofuWaits(t *testing.T) {
	testkit.OneIsEnough(t)
	t.Parallel()
	p := inModule(t, empty)
	b := newBeside(t, p, testkit.Program(t, "STATECRYPT_TOFU"))
	p.must(t, "init")
	p.must(t, "apply", "-auto-approve")
	slow := newSlowly(t, p.dir)
	first, second := make(chan string), make(chan string)
	go func() {
		defer close(first)
		if code, err, out := p.wrapped(t, "apply", "-auto-approve"); code != 0 || err != nil {
			t.Errorf("the first: %d, %v\n%s", code, err, out)
		}
	}()
	_ = read(t, slow.started)
	if code, out := b.tofu(t, "plan"); code == 0 || !strings.Contains(out, "OperationTypeApply") {
		t.Errorf("tofu, while wrap works: %d\n%s", code, out)
	}
	go func() {
		defer close(second)
		const changes = 2
		code, out := b.tofu(t, "plan", "-lock-timeout=5m", "-detailed-exitcode")
		if code != changes || !strings.Contains(out, "0 to add, 0 to change, 1 to destroy") { // of a resource that it does not know
			t.Errorf("tofu, after it has waited: %d\n%s", code, out)
		}
	}()
	write(t, slow.goOn, "")
	<-first
	<-second
	p.checkFiles(t)
}

// While OpenTofu works, the CLI under wrap says who has the lock, which cannot be broken, or waits.
//
// Promise: States in stores
func TestAccFileHeldByTofu(t *testing.T) {
	testkit.OneIsEnough(t)
	t.Parallel()
	p := inModule(t, empty)
	b := newBeside(t, p, testkit.Program(t, "STATECRYPT_TOFU"))
	p.must(t, "init")
	p.must(t, "apply", "-auto-approve")
	slow := newSlowly(t, b.dir)
	first, second := make(chan string), make(chan string)
	go func() {
		defer close(first)
		if code, out := b.tofu(t, "apply", "-auto-approve"); code != 0 {
			t.Errorf("tofu: %d\n%s", code, out)
		}
	}()
	_ = read(t, slow.started)
	code, err, out := p.wrapped(t, "plan")
	if code == 0 || err != nil || !strings.Contains(out, `for "OperationTypeApply"`) {
		t.Errorf("while tofu works: %d, %v\n%s", code, err, out)
	}
	holder := id([]byte(read(t, filepath.Join(p.dir, ".terraform.tfstate.lock.info"))))
	code, err, out = p.wrapped(t, "force-unlock", "-force", holder)
	if code == 0 || err != nil || !strings.Contains(out, "process") {
		t.Errorf("unlocked by force: %d, %v\n%s", code, err, out)
	}
	go func() {
		defer close(second)
		code, err, out := p.wrapped(t, "plan", "-lock-timeout=5m", "-detailed-exitcode")
		const changes = 2
		if code != changes || err != nil || !strings.Contains(out, "0 to add, 0 to change, 1 to destroy") {
			t.Errorf("after it has waited: %d, %v\n%s", code, err, out)
		}
	}()
	write(t, slow.goOn, "")
	<-first
	<-second
}

// If wrap is killed, OpenTofu does not get the lock before the CLI has ended that was under wrap.
//
// Promise: States in stores
func TestAccFileKilled(t *testing.T) {
	testkit.OneIsEnough(t)
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("locks are inherited only on Linux")
	}
	p := inModule(t, empty)
	b := newBeside(t, p, testkit.Program(t, "STATECRYPT_TOFU"))
	p.target = target(t, sealing)
	p.must(t, "init")
	slow := newSlowly(t, p.dir)
	cmd := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this program
	cmd.Env = append(p.env, "WRAP_TEST_FILE="+p.state(), "WRAP_TEST_SCRIPT=wrap="+p.cli+",-chdir="+p.dir+",apply,-auto-approve")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = read(t, slow.started)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if code, out := b.tofu(t, "plan"); code == 0 || !strings.Contains(out, "OperationTypeApply") {
		t.Errorf("tofu, while the CLI works: %d\n%s", code, out)
	}
	write(t, slow.goOn, "")
	if code, out := b.tofu(t, "plan", "-lock-timeout=5m"); code != 0 {
		t.Errorf("tofu, after it has waited: %d\n%s", code, out)
	}
}

// An older copy that someone puts back is refused, once it was seen.
//
// Promise: States in stores
func TestAccFileOld(t *testing.T) {
	t.Parallel()
	p := inModule(t, empty)
	p.must(t, "init")
	p.must(t, "apply", "-auto-approve")
	old := read(t, p.state())
	p.must(t, "apply", "-auto-approve", "-var=text="+secret+"2")
	write(t, p.state(), old)
	code, err, out := p.wrapped(t, "apply", "-auto-approve")
	if code == 0 || !strings.Contains(out, "statecrypt wrap -accept") {
		t.Errorf("%d, %v\n%s", code, err, out)
	}
	p.with = wrap.Options{Where: p.with.Where, Wishes: wrap.Wishes{Accept: true}}
	p.must(t, "plan")
}

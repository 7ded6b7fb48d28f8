package wrap_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object/objecttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/cloudtest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
)

// checkSealed looks at everything that was ever stored.
func (b *bucket) checkSealed(t *testing.T) {
	t.Helper()
	all := b.Everything(stateBucket)
	for _, data := range all {
		if bytes.Contains(data, []byte(secret)) {
			t.Errorf("this was stored: %.300s", data)
		}
	}
	if len(all) == 0 {
		t.Error("nothing was stored: this test shows nothing")
	}
}

// inBucket is a project whose state is in a bucket.
func inBucket(t *testing.T) (*project, *bucket) {
	t.Helper()
	b := newBucket(t)
	b.Keep(stateBucket)
	p := newProject(t, nil, empty)
	p.with.Where.Backend = s3Block(b.block)
	return p, b
}

const abandoned = `{"ID":"11111111-2222-4333-8444-555555555555","Operation":"OperationTypeApply","Info":"","Who":"ann@host",` +
	`"Version":"1.12.6","Created":"2026-11-27T00:00:00Z","Path":"acme-states/net/prod.tfstate"}`

// A state is written to a bucket, changed, moved, and destroyed; a lock that is left is shown and given
// back, and no version of any object is plaintext.
//
// Promise: Only encrypted states
func TestAccS3(t *testing.T) {
	testkit.OneIsEnough(t)
	t.Parallel()
	p, b := inBucket(t)
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
	b.Put(stateBucket, stateKey+".tflock", []byte(abandoned))
	code, err, out := p.wrapped(t, "apply", "-auto-approve", "-lock-timeout=1s")
	if code == 0 || !strings.Contains(out, `"ann@host"`) {
		t.Errorf("held: %d, %v\n%s", code, err, out)
	}
	p.must(t, "force-unlock", "-force", "11111111-2222-4333-8444-555555555555")
	p.must(t, "destroy", "-auto-approve")
	b.checkSealed(t)
	p.checkClean(t)
}

// newTofu lets OpenTofu work in the same folder, with a file of its own that names the bucket.
func newTofu(t *testing.T, p *project, b *bucket) func(args ...string) (int, string) {
	t.Helper()
	program := testkit.Program(t, "STATECRYPT_TOFU")
	text := strings.Replace(module(empty), "terraform {\n"+empty+"\n}\n", "", 1)
	write(t, filepath.Join(p.dir, "main.tf"), text)
	write(t, filepath.Join(p.dir, "backend.tf"), inside(empty))
	lock := "use_lockfile = true"
	if b.table != nil {
		lock = `dynamodb_table = "` + b.table.Name + `"`
	}
	write(t, filepath.Join(p.dir, "backend.tofu"), inside(b.backend(lock)))
	tofu := func(args ...string) (int, string) {
		return p.bare(t, program, []string{"TF_ENCRYPTION=" + tofuKeys, "TF_DATA_DIR=.tofu"}, args...)
	}
	if code, out := tofu("init"); code != 0 {
		t.Fatalf("%d\n%s", code, out)
	}
	return tofu
}

// Terraform under wrap and OpenTofu with its own backend work on one object, from one folder: each
// reads what the other wrote, stops at its lock and says who has it, waits for it, and gives back one
// that was left.
//
// Promise: States in stores
func TestAccS3Turns(t *testing.T) {
	testkit.OneIsEnough(t)
	t.Parallel()
	p, b := inBucket(t)
	if strings.Contains(filepath.Base(p.cli), "tofu") {
		t.Skip("the file for Terraform is not read by this CLI")
	}
	tofu := newTofu(t, p, b)
	p.must(t, "init")
	p.must(t, "apply", "-auto-approve")
	text := "-var=text=" + secret + "2"
	for _, args := range [][]string{{"plan", "-detailed-exitcode"}, {"apply", "-auto-approve", text}} {
		if code, out := tofu(args...); code != 0 {
			t.Fatalf("tofu %q: %d\n%s", args, code, out)
		}
	}
	if code, err, out := p.wrapped(t, "plan", "-detailed-exitcode", text); code != 0 || err != nil {
		t.Errorf("after tofu: %d, %v\n%s", code, err, out)
	}
	const id = "11111111-2222-4333-8444-555555555555"
	for name, release := range map[string]func(){
		"wrap": func() { p.must(t, "force-unlock", "-force", id) },
		"tofu": func() {
			if code, out := tofu("force-unlock", "-force", id); code != 0 {
				t.Errorf("tofu, force-unlock: %d\n%s", code, out)
			}
		},
	} {
		b.Put(stateBucket, stateKey+".tflock", []byte(abandoned))
		code, err, out := p.wrapped(t, "plan")
		if code == 0 || err != nil || !strings.Contains(out, "ann@host") {
			t.Errorf("%s, held: %d, %v\n%s", name, code, err, out)
		}
		if code, out := tofu("plan"); code == 0 || !strings.Contains(out, "ann@host") {
			t.Errorf("%s, tofu, held: %d\n%s", name, code, out)
		}
		release()
		if lock := b.Get(stateBucket, stateKey+".tflock"); lock != nil {
			t.Errorf("%s: the lock is still %s", name, lock)
		}
	}

	slow := newSlowly(t, p.dir)
	first, second := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(first)
		if code, err, out := p.wrapped(t, "apply", "-auto-approve"); code != 0 || err != nil {
			t.Errorf("the first: %d, %v\n%s", code, err, out)
		}
	}()
	_ = read(t, slow.started)
	if code, out := tofu("plan"); code == 0 || !strings.Contains(out, "OperationTypeApply") {
		t.Errorf("tofu, while wrap works: %d\n%s", code, out)
	}
	go func() {
		defer close(second)
		if code, out := tofu("plan", "-lock-timeout=5m", "-detailed-exitcode"); code != 0 {
			t.Errorf("tofu, after it has waited: %d\n%s", code, out)
		}
	}()
	write(t, slow.goOn, "")
	<-first
	<-second

	first, second = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(first)
		if code, out := tofu("apply", "-auto-approve", "-replace=terraform_data.slow"); code != 0 {
			t.Errorf("tofu: %d\n%s", code, out)
		}
	}()
	_ = read(t, slow.started)
	code, err, out := p.wrapped(t, "plan")
	if code == 0 || err != nil || !strings.Contains(out, `for "OperationTypeApply"`) {
		t.Errorf("while tofu works: %d, %v\n%s", code, err, out)
	}
	go func() {
		defer close(second)
		if code, err, out := p.wrapped(t, "plan", "-lock-timeout=5m", "-detailed-exitcode"); code != 0 || err != nil {
			t.Errorf("after it has waited: %d, %v\n%s", code, err, out)
		}
	}()
	write(t, slow.goOn, "")
	<-first
	<-second
	b.checkSealed(t)
}

// With a table, both take turns as well: locks and digests are those of the CLIs.
func TestAccS3Table(t *testing.T) {
	testkit.OneIsEnough(t)
	t.Parallel()
	p, b := inBucket(t)
	if strings.Contains(filepath.Base(p.cli), "tofu") {
		t.Skip("the file for Terraform is not read by this CLI")
	}
	b.lockIn(t, "locks")
	p.with.Where.Backend = s3Block(b.block)
	tofu := newTofu(t, p, b)
	p.must(t, "init")
	p.must(t, "apply", "-auto-approve")
	text := "-var=text=" + secret + "2"
	for _, args := range [][]string{{"plan", "-detailed-exitcode"}, {"apply", "-auto-approve", text}} {
		if code, out := tofu(args...); code != 0 {
			t.Fatalf("tofu %q: %d\n%s", args, code, out)
		}
	}
	code, err, out := p.wrapped(t, "plan", "-detailed-exitcode", text)
	if code != 0 || err != nil || strings.Contains(out, "digest") {
		t.Errorf("after tofu: %d, %v\n%s", code, err, out)
	}
	id := stateBucket + "/" + stateKey
	b.table.Put(id, "Info", abandoned)
	if code, err, out := p.wrapped(t, "plan"); code == 0 || err != nil || !strings.Contains(out, "ann@host") {
		t.Errorf("held: %d, %v\n%s", code, err, out)
	}
	if code, out := tofu("plan"); code == 0 || !strings.Contains(out, "ann@host") {
		t.Errorf("tofu, held: %d\n%s", code, out)
	}
	p.must(t, "force-unlock", "-force", "11111111-2222-4333-8444-555555555555")
	if left := b.table.Text(id, "Info"); left != "" {
		t.Errorf("the lock is still %s", left)
	}
	b.checkSealed(t)
}

// A state that Terraform's own backend keeps in plaintext is encrypted in its place, under its lock;
// who works without wrap is then refused.
//
// Promise: States in stores
func TestAccS3EncryptExisting(t *testing.T) {
	testkit.OneIsEnough(t)
	t.Parallel()
	p, b := inBucket(t)
	own := module(b.backend("use_lockfile = true"))
	write(t, filepath.Join(p.dir, "main.tf"), own)
	if code, out := p.bare(t, p.cli, nil, "init"); code != 0 && strings.Contains(out, "use_lockfile") {
		t.Skip("this CLI has no use_lockfile")
	} else if code != 0 {
		t.Fatalf("%d\n%s", code, out)
	}
	if code, out := p.bare(t, p.cli, nil, "apply", "-auto-approve"); code != 0 {
		t.Fatalf("%d\n%s", code, out)
	}
	write(t, filepath.Join(p.dir, "main.tf"), module(empty))
	p.with.Wishes.EncryptExisting = true
	b.Put(stateBucket, stateKey+".tflock", []byte(abandoned))
	if code, err, out := p.wrapped(t, "init"); code == 0 || err == nil {
		t.Errorf("while it is locked: %d, %v\n%s", code, err, out)
	}
	b.Delete(stateBucket, stateKey+".tflock")
	p.must(t, "init")
	p.with.Wishes.EncryptExisting = false
	if code, err, out := p.wrapped(t, "plan", "-detailed-exitcode"); code != 0 || err != nil {
		t.Errorf("encrypted: %d, %v\n%s", code, err, out)
	}
	if state, lock := b.state(); strings.Contains(state, secret) || lock != "" {
		t.Errorf("there is %.300s, and the lock %s", state, lock)
	}
	write(t, filepath.Join(p.dir, "main.tf"), own)
	if code, out := p.bare(t, p.cli, nil, "plan"); code == 0 || !strings.Contains(out, `"version" attribute`) && !strings.Contains(out, "encrypt") {
		t.Errorf("without wrap: %d\n%s", code, out)
	}
}

// An apply without changes makes few more requests than Terraform's own backend does.
func TestAccS3Requests(t *testing.T) {
	testkit.OneIsEnough(t)
	t.Parallel()
	p, b := inBucket(t)
	b.Hosts = []string{"s3.eu-west-1.amazonaws.com"}
	internet := cloudtest.New(t, map[string]http.Handler{"*.s3.eu-west-1.amazonaws.com": b.Server, "s3.eu-west-1.amazonaws.com": b.Server})
	apply := []string{"apply", "-auto-approve"}
	plain := module(b.backend("use_lockfile = true"))
	write(t, filepath.Join(p.dir, "main.tf"), plain)
	own := 0
	for _, args := range [][]string{{"init"}, apply, apply} {
		b.Requests()
		code, out := p.bare(t, p.cli, nil, args...)
		if code != 0 && strings.Contains(out, "use_lockfile") {
			t.Skip("this CLI has no use_lockfile")
		}
		if own = len(b.Requests()); code != 0 {
			t.Fatalf("%d\n%s", code, out)
		}
	}
	write(t, filepath.Join(p.dir, "main.tf"), module(empty))
	if err := os.RemoveAll(filepath.Join(p.dir, ".terraform")); err != nil {
		t.Fatal(err)
	}
	counted := func(block objecttest.Attrs) int {
		b.Delete(stateBucket, stateKey)
		p.with = wrap.Options{Where: states.Where{Backend: s3Block(block)}, Wishes: wrap.Wishes{Accept: true}}
		p.must(t, "init")
		p.must(t, apply...)
		b.Requests()
		p.must(t, apply...)
		return len(b.Requests())
	}
	atAWS := b.block.With("endpoints", nil).With("https_proxy", internet.Proxy).With("custom_ca_bundle", internet.CAFile)
	onAWS := counted(atAWS.With("use_path_style", nil))
	elsewhere := counted(b.block)
	t.Logf("an apply without changes: %d requests by its own backend, %d on AWS under wrap, %d elsewhere", own, onAWS, elsewhere)
	if onAWS > own+2 || elsewhere > own+6 {
		t.Errorf("%d requests by its own backend, %d on AWS under wrap, %d elsewhere", own, onAWS, elsewhere)
	}
}

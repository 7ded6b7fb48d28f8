package wrap_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gcs/gcstest"
)

const (
	gcsState = "net/default.tfstate"
	gcsLock  = "net/default.tflock"
)

// inCloudStorage returns a project whose state is in a bucket of Cloud Storage, or of a server that stands for it.
func inCloudStorage(t *testing.T, endpoint string) *project {
	t.Helper()
	p := newProject(t, nil, empty)
	p.with.Where.Backend = gcsBlock(endpoint)
	return p
}

// ownGCS returns the block of a CLI that has the state without wrap.
func ownGCS(endpoint string) string {
	custom := ""
	if endpoint != "" {
		custom = fmt.Sprintf("storage_custom_endpoint = %q\n", endpoint)
	}
	return fmt.Sprintf("backend \"gcs\" {\nbucket = %q\nprefix = \"net\"\naccess_token = %q\n%s}", stateBucket, gcstest.Token, custom)
}

// tofuBeside lets OpenTofu work in the same folder, with a file of its own that names the bucket.
func tofuBeside(t *testing.T, p *project, endpoint string) func(args ...string) (int, string) {
	t.Helper()
	program := testkit.Program(t, "STATECRYPT_TOFU")
	if strings.Contains(filepath.Base(p.cli), "tofu") {
		t.Skip("the file for Terraform is not read by this CLI")
	}
	write(t, filepath.Join(p.dir, "main.tf"), strings.Replace(module(empty), "terraform {\n"+empty+"\n}\n", "", 1))
	write(t, filepath.Join(p.dir, "backend.tf"), inside(empty))
	write(t, filepath.Join(p.dir, "backend.tofu"), inside(ownGCS(endpoint)))
	tofu := func(args ...string) (int, string) {
		return p.bare(t, program, []string{"TF_ENCRYPTION=" + tofuKeys, "TF_DATA_DIR=.tofu"}, args...)
	}
	if code, out := tofu("init"); code != 0 {
		t.Fatalf("%d\n%s", code, out)
	}
	return tofu
}

// cloud is a server with a bucket, and what others do there.
type cloud struct {
	endpoint string
	put      func(object string, data []byte) (generation string)
	isThere  func(object string) bool
	isSealed func() // looks at everything that was stored
}

// TestAccGCSTurns has Terraform under wrap and OpenTofu with its own backend work on one object: each reads what the
// other wrote, stops at its lock and says who has it, waits for it, and releases one that was left.
//
// Promise: States in stores
func TestAccGCSTurns(t *testing.T) {
	testkit.OneIsEnough(t)
	t.Parallel()
	s := gcstest.New(stateBucket)
	takeTurns(t, cloud{
		endpoint: s.Start(t),
		put:      func(object string, data []byte) string { return s.Put(stateBucket, object, gcstest.Object{Data: data}) },
		isThere:  func(object string) bool { return s.Get(stateBucket, object) != nil },
		isSealed: func() {
			for _, data := range s.Everything(stateBucket) {
				if bytes.Contains(data, []byte(secret)) {
					t.Errorf("this was stored: %.300s", data)
				}
			}
		},
	})
}

// TestAccRealGCSTurns does the same on fake-gcs-server.
func TestAccRealGCSTurns(t *testing.T) {
	testkit.OneIsEnough(t)
	origin := gcstest.StartReal(t, stateBucket)
	t.Parallel()
	takeTurns(t, realGCS(t, origin))
}

// realGCS returns the bucket of fake-gcs-server.
func realGCS(t *testing.T, origin string) cloud {
	t.Helper()
	ask := func(method, path string, data []byte) (status int, answer []byte) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, origin+path, bytes.NewReader(data))
		must(t, err)
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		defer resp.Body.Close()
		answer, err = io.ReadAll(resp.Body)
		must(t, err)
		return resp.StatusCode, answer
	}
	object := func(name string) string { return "/storage/v1/b/" + stateBucket + "/o/" + url.PathEscape(name) }
	return cloud{
		endpoint: origin + "/storage/v1/",
		put: func(name string, data []byte) string {
			_, answer := ask(http.MethodPost, "/upload/storage/v1/b/"+stateBucket+"/o?uploadType=media&name="+url.QueryEscape(name), data)
			var made struct{ Generation string }
			must(t, json.Unmarshal(answer, &made))
			return made.Generation
		},
		isThere: func(name string) bool {
			status, _ := ask(http.MethodGet, object(name), nil)
			return status == http.StatusOK
		},
		isSealed: func() {
			status, data := ask(http.MethodGet, object(gcsState)+"?alt=media", nil)
			if status != http.StatusOK || bytes.Contains(data, []byte(secret)) {
				t.Errorf("%d: this is stored: %.300s", status, data)
			}
		},
	}
}

func takeTurns(t *testing.T, c cloud) {
	t.Helper()
	p := inCloudStorage(t, c.endpoint)
	tofu := tofuBeside(t, p, c.endpoint)
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
	for name, release := range map[string]func(generation string){
		"wrap": func(generation string) { p.must(t, "force-unlock", "-force", generation) },
		"tofu": func(generation string) {
			if code, out := tofu("force-unlock", "-force", generation); code != 0 {
				t.Errorf("tofu, force-unlock: %d\n%s", code, out)
			}
		},
	} {
		generation := c.put(gcsLock, []byte(abandoned))
		code, err, out := p.wrapped(t, "plan")
		if code == 0 || err != nil || !strings.Contains(out, "ann@host") || !strings.Contains(out, generation) {
			t.Errorf("%s, held: %d, %v\n%s", name, code, err, out)
		}
		if code, out := tofu("plan"); code == 0 || !strings.Contains(out, "ann@host") || !strings.Contains(out, generation) {
			t.Errorf("%s, tofu, held: %d\n%s", name, code, out)
		}
		release(generation)
		if c.isThere(gcsLock) {
			t.Errorf("%s: the lock is still there", name)
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
	if code, err, out := p.wrapped(t, "plan"); code == 0 || err != nil || !strings.Contains(out, `for "OperationTypeApply"`) {
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
	p.must(t, "destroy", "-auto-approve")
	c.isSealed()
	p.checkClean(t)
}

// TestAccGCSEncryptExisting tests that a state which Terraform's own backend keeps in plaintext is encrypted in its
// place, under its lock, and that whoever works without wrap is then refused.
//
// Promise: States in stores
func TestAccGCSEncryptExisting(t *testing.T) {
	testkit.OneIsEnough(t)
	t.Parallel()
	s := gcstest.New(stateBucket)
	encryptExisting(t, cloud{
		endpoint: s.Start(t),
		put:      func(object string, data []byte) string { return s.Put(stateBucket, object, gcstest.Object{Data: data}) },
		isThere:  func(object string) bool { return s.Get(stateBucket, object) != nil },
		isSealed: func() {
			if o := s.Get(stateBucket, gcsState); o == nil || bytes.Contains(o.Data, []byte(secret)) {
				t.Errorf("this is stored: %+v", o)
			}
		},
	})
}

// TestAccRealGCSEncryptExisting does the same on fake-gcs-server.
func TestAccRealGCSEncryptExisting(t *testing.T) {
	testkit.OneIsEnough(t)
	origin := gcstest.StartReal(t, stateBucket)
	t.Parallel()
	encryptExisting(t, realGCS(t, origin))
}

func encryptExisting(t *testing.T, c cloud) {
	t.Helper()
	p := inCloudStorage(t, c.endpoint)
	own := module(ownGCS(c.endpoint))
	write(t, filepath.Join(p.dir, "main.tf"), own)
	for _, args := range [][]string{{"init"}, {"apply", "-auto-approve"}} {
		if code, out := p.bare(t, p.cli, nil, args...); code != 0 {
			t.Fatalf("%q: %d\n%s", args, code, out)
		}
	}
	write(t, filepath.Join(p.dir, "main.tf"), module(empty))
	p.with.Wishes.EncryptExisting = true
	generation := c.put(gcsLock, []byte(abandoned))
	if code, err, out := p.wrapped(t, "init"); code == 0 || err == nil || !strings.Contains(err.Error(), "ann@host") {
		t.Errorf("while it is locked: %d, %v\n%s", code, err, out)
	}
	p.with.Wishes.EncryptExisting = false
	p.must(t, "force-unlock", "-force", generation)
	if c.isThere(gcsLock) {
		t.Error("the lock is still there")
	}
	p.with.Wishes.EncryptExisting = true
	p.must(t, "init")
	p.with.Wishes.EncryptExisting = false
	c.isSealed()
	if c.isThere(gcsLock) {
		t.Error("the lock of wrap is still there")
	}
	if code, err, out := p.wrapped(t, "plan", "-detailed-exitcode"); code != 0 || err != nil {
		t.Errorf("encrypted: %d, %v\n%s", code, err, out)
	}
	write(t, filepath.Join(p.dir, "main.tf"), own)
	if code, out := p.bare(t, p.cli, nil, "plan"); code == 0 || !strings.Contains(out, `"version" attribute`) && !strings.Contains(out, "encrypt") {
		t.Errorf("without wrap: %d\n%s", code, out)
	}
}

// TestAccGCSRequests counts the requests of an apply without changes, beside those of OpenTofu's own backend.
func TestAccGCSRequests(t *testing.T) {
	testkit.OneIsEnough(t)
	t.Parallel()
	s := gcstest.New(stateBucket)
	endpoint := s.Start(t)
	p := inCloudStorage(t, endpoint)
	tofu := tofuBeside(t, p, endpoint)
	own := 0
	for range 2 {
		s.Requests()
		if code, out := tofu("apply", "-auto-approve"); code != 0 {
			t.Fatalf("%d\n%s", code, out)
		}
		own = len(s.Requests())
	}
	s.Delete(stateBucket, gcsState)
	p.with.Wishes.Accept = true
	p.must(t, "init")
	elsewhere := 0
	for range 2 {
		s.Requests()
		p.must(t, "apply", "-auto-approve")
		elsewhere = len(s.Requests())
	}
	t.Logf("an apply without changes: %d requests by its own backend, %d under wrap on a server that is not Google's", own, elsewhere)
	if elsewhere > own+6 {
		t.Errorf("%d requests by its own backend, %d under wrap", own, elsewhere)
	}
}

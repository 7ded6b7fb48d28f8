package wrap_test

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// TestMoveInIsReadBack: that a state is in the backend is said only once it was read from
// there, under the lock. Many a server answers 200 to anything.
//
// Promise: Runs under wrap
func TestMoveInIsReadBack(t *testing.T) {
	t.Parallel()
	mistakes := wraptest.OpenMistakes(t, "read back")
	for name, post := range map[string]string{"nothing is kept": "", "a page to sign in": "<html>" + canary} {
		for place, there := range map[string]string{"in the module": "", "in the backend": state} {
			s := newStore(t)
			if there != "" {
				s.put([]byte(there))
			}
			s.intercept(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPost {
					_, _ = io.WriteString(w, post)
				}
				return r.Method == http.MethodPost
			})
			o, dir, out := scripted(t, s, "ready GET", "init")
			o.Wishes.EncryptExisting = true
			write(t, filepath.Join(dir, "terraform.tfstate"), filled)
			code, err, told := run(t, o)
			mistakes.Ended(t, name+", "+place, told, code, err)
			if code != 1 || out.String() != "" {
				t.Errorf("%s, %s: %d, and the child was run: %s", name, place, code, out)
			}
			if seen := s.requests(); len(seen) == 0 || !strings.HasPrefix(seen[len(seen)-1], "UNLOCK") || count(seen, "GET") != 3 {
				t.Errorf("%s, %s: the backend was asked to %q", name, place, seen)
			}
		}
	}
}

// TestReadBackInAnotherForm: a backend may keep JSON in another form, as databases do.
//
// Promise: Runs under wrap
func TestReadBackInAnotherForm(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || len(s.stored()) == 0 {
			return false
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(s.stored(), &members); err != nil {
			t.Error(err)
		}
		text, _ := json.MarshalIndent(members, "", " ")
		_, _ = w.Write(text)
		return true
	})
	o, dir, _ := scripted(t, s, "ready GET", "init")
	o.Wishes.EncryptExisting = true
	write(t, filepath.Join(dir, "terraform.tfstate"), filled)
	if code, err, told := run(t, o); code != 0 || err != nil || !strings.Contains(told, "terraform.tfstate") {
		t.Errorf("%d, %v, %s", code, err, told)
	}
}

// TestLeftInPlaintext: if init fails after the state was copied, wrap says that it is in
// plaintext in its new place.
//
// Promise: Runs under wrap
func TestLeftInPlaintext(t *testing.T) {
	t.Parallel()
	mistakes := wraptest.OpenMistakes(t, "leaving, and it fails")
	for name, script := range map[string]string{
		"a local backend": `GET reset={"backend":{"type":"local","config":{}}} exit=1`,
		"another address": `GET reset={"backend":{"type":"http","config":{"address":"x"}}} exit=1`,
		"no backend":      `GET reset={} exit=1`,
		"before it":       `GET exit=1`,
	} {
		o, dir, _ := scripted(t, newStore(t), script, "init", "-migrate-state", "-force-copy")
		o.Wishes.Leave = true
		write(t, filepath.Join(dir, "main.tf"), inside(`backend "local" {}`))
		code, err, told := run(t, o)
		mistakes.Ended(t, name, told, code, err)
	}
}

// TestAccLeaveFails: Terraform copies the state before it installs providers.
func TestAccLeaveFails(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	p := newProject(t, s.environ(), empty)
	p.must(t, "init")
	p.must(t, "apply", "-auto-approve")
	const provider = "required_providers {\nx = { source = \"localhost:1/x/x\" }\n}"
	write(t, filepath.Join(p.dir, "main.tf"), module("backend \"local\" {}\n"+provider))
	p.with = wrap.Options{Wishes: wrap.Wishes{Leave: true}}
	code, err, out := p.wrapped(t, "init", "-migrate-state", "-force-copy")
	if code != 1 || err != nil || !strings.Contains(out, "plaintext") {
		t.Errorf("%d, %v\n%s", code, err, out)
	}
	if left := read(t, filepath.Join(p.dir, "terraform.tfstate")); !strings.Contains(left, secret) {
		t.Errorf("this was copied: %s", left)
	}
}

// TestAccEncodings: a gateway that calls what it sends aws-chunked locks nobody out.
//
// Promise: Runs under wrap
func TestAccEncodings(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header()["Content-Encoding"] = []string{"aws-chunked", "utf-8"}
		return false
	})
	p := newProject(t, s.environ(), empty)
	p.must(t, "init")
	p.must(t, "apply", "-auto-approve")
	p.must(t, "plan")
	p.must(t, "apply", "-auto-approve")
	p.must(t, "output")
}

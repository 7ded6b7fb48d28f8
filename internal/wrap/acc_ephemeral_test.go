package wrap_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
)

// TestAccStoreBlock keeps ephemeral values in the block store of terraform_data, which copies them into state and plan.
// They are in no store, and in no file that is left behind: not in the plan, nor in a state that the backend refuses.
//
// Promise: Only encrypted states
func TestAccStoreBlock(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	s := newStore(t)
	p := newProject(t, s.environ(), empty)
	write(t, filepath.Join(p.dir, "main.tf"), "terraform {\n"+empty+"\n}\n"+`
variable "token" {
  type      = string
  ephemeral = true
}
resource "terraform_data" "shown" {
  store { input = var.token }
}
resource "terraform_data" "hidden" {
  store {
    input     = var.token
    sensitive = true
  }
}
`)
	p.with.Keys.Plan = wraptest.Settings(t, tofuKeys+"plan { method = method.aes_gcm.m }\n").Plan()
	for _, command := range []string{"init", "validate"} {
		code, err, out := p.wrapped(t, command)
		if strings.Contains(out, `argument named "ephemeral" is not expected here`) || strings.Contains(out, `type "store" are not expected here`) {
			t.Skip("this CLI has no block store in terraform_data")
		}
		if code != 0 || err != nil {
			t.Fatalf("%s: %d, %v\n%s", command, code, err, out)
		}
	}
	p.env = append(p.env, "TF_VAR_token="+secret)

	left := filepath.Join(p.dir, "errored.tfstate")
	s.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusForbidden)
		}
		return r.Method == http.MethodPost
	})
	if code, err, out := p.wrapped(t, "apply", "-auto-approve"); code != 1 || err != nil {
		t.Errorf("refused: %d, %v\n%s", code, err, out)
	}
	opened, err := p.target.Decrypt(t.Context(), []byte(read(t, left)))
	if err != nil || !opened.Encrypted || bytes.Count(opened.Data, []byte(secret)) != 2 {
		t.Errorf("the state that was refused: %v", err)
	}
	s.intercept(nil)
	if err := os.Remove(left); err != nil {
		t.Fatal(err)
	}

	p.must(t, "plan", "-out=tfplan")
	if info, err := encryption.Inspect([]byte(read(t, filepath.Join(p.dir, "tfplan")))); err != nil || info.Kind != encryption.KindEncrypted {
		t.Errorf("the plan is %v, %v", info.Kind, err)
	}
	p.must(t, "apply", "tfplan")
	s.checkSealed(t, secret)
	opened, err = p.target.Decrypt(t.Context(), s.stored())
	if err != nil || bytes.Count(opened.Data, []byte(secret)) != 2 {
		t.Errorf("the values are not in the state: %v", err)
	}
	p.checkFiles(t)
	p.checkClean(t)
	if files, err := filepath.Glob(filepath.Join(temporary, "*")); err != nil || len(files) > 0 {
		t.Errorf("these files are left: %q, %v", files, err)
	}
}

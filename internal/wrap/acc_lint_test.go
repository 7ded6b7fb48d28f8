package wrap_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
)

// TestAccLint: without a key and a store, a module is initialized and validated, whatever is recorded, and beside
// an encrypted state in the file that the CLI would read.
func TestAccLint(t *testing.T) {
	s := newStore(t)
	p := newProject(t, s.environ(), empty)
	p.must(t, "init")
	p.must(t, "apply", "-auto-approve")
	write(t, filepath.Join(p.dir, "terraform.tfstate"), string(seal(t, sealing, state)))
	target, store := p.target, p.store
	for _, recorded := range []bool{true, false} {
		s.requests() // of what came before
		p.target, p.store = encryption.Target{}, nil
		if !recorded {
			if err := os.RemoveAll(filepath.Join(p.dir, ".terraform")); err != nil {
				t.Fatal(err)
			}
		}
		for _, args := range [][]string{{"init", "-backend=false"}, {"validate"}, {"get"}, {"fmt"}, {"providers", "lock"}} {
			p.must(t, args...)
		}
		if asked := s.requests(); len(asked) > 0 {
			t.Errorf("the store was asked: %q", asked)
		}
		if code, err, out := p.wrapped(t, "providers"); err == nil {
			t.Errorf("providers reads no state: %d, %s", code, out)
		}
		p.target, p.store = target, store
		if recorded {
			p.must(t, "plan", "-detailed-exitcode")
		}
	}
	p.must(t, "init")
	p.must(t, "plan", "-detailed-exitcode")
}

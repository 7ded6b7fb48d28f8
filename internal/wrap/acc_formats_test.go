package wrap_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/conformance"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/tfstate"
)

// TestAccOldFormats has the CLI work under wrap on states of formats 1 to 3. It writes format 4, or refuses them, as
// OpenTofu does from 1.13 on, and leaves the state as it was. We read each of them, with the same outputs.
func TestAccOldFormats(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"plain_v1", "plain_v2", "plain_v3"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := conformance.Get(name).State()
			s := newStore(t)
			p := newProject(t, s.environ(), empty)
			p.must(t, "init")
			s.put(seal(t, tofuKeys, string(old)))
			before := s.stored()
			outputs := func() int {
				t.Helper()
				opened, err := p.target.Decrypt(t.Context(), s.stored())
				if err != nil || !opened.Encrypted {
					t.Fatal(err)
				}
				parsed, err := tfstate.Parse(opened.Data)
				if err != nil {
					t.Fatal(err)
				}
				for name, output := range parsed.Outputs {
					if _, err := output.Value(); err != nil {
						t.Errorf("the output %s: %v", name, err)
					}
				}
				return len(parsed.Outputs)
			}
			if outputs() == 0 {
				t.Error("the state has no outputs")
			}
			code, err, out := p.wrapped(t, "apply", "-auto-approve")
			if err != nil {
				t.Fatal(err)
			}
			if code != 0 {
				if !strings.Contains(out, "not supported by OpenTofu") || !bytes.Equal(s.stored(), before) {
					t.Errorf("%d\n%s", code, out)
				}
				return
			}
			opened, err := p.target.Decrypt(t.Context(), s.stored())
			if err != nil || !strings.Contains(strings.ReplaceAll(string(opened.Data), " ", ""), `"version":4,`) {
				t.Errorf("this is stored: %v, %.100s", err, opened.Data)
			}
			if n := outputs(); n != 1 { // that of the module
				t.Errorf("the state has %d outputs", n)
			}
		})
	}
}

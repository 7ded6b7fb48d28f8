package wrap_test

import (
	"os"
	"path/filepath"
	"testing"

	"filippo.io/age"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// TestPlansForOthers: a plan is sealed for recipients alone, and whoever has a key opens it.
// What cannot work is found before the child is run.
//
// Promise: Runs under wrap
func TestPlansForOthers(t *testing.T) {
	t.Parallel()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	ours := "method \"age\" \"a\" { identities = [\"" + identity.String() + "\"] }\nplan { method = method.age.a }"
	theirs := `recipients = ["` + identity.Recipient().String() + `"]`
	mistakes := wraptest.OpenMistakes(t, "plan for others")
	for name, c := range testkit.Some(map[string]struct {
		settings string
		refused  bool
	}{
		"recipients alone": {settings: "method \"age\" \"a\" { " + theirs + " }\nplan { method = method.age.a }"},
		"and a fallback": {
			settings: "method \"age\" \"a\" { " + theirs + " }\nplan {\nmethod = method.age.a\nfallback { method = method.aes_gcm.m }\n}",
		},
		"no way to encrypt": {settings: ours, refused: true},
		"nothing encrypted": {settings: "plan { method = method.unencrypted.u }", refused: true},
	}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made, written := filepath.Join(t.TempDir(), "made"), planOf(t, "http", "", canary)
			write(t, made, written)
			o, dir, out := scripted(t, newStore(t), "ready GET save="+made+" exit=2", "plan", "-detailed-exitcode", "-out=p")
			o.Keys.Plan = wraptest.Settings(t, sealing+"\n"+c.settings).Plan()
			write(t, filepath.Join(dir, "p"), archive(t, "old"))
			code, err, told := run(t, o)
			mistakes.Ended(t, name, told, code, err)
			if c.refused {
				if _, err := os.Stat(filepath.Join(dir, "p")); err == nil {
					t.Error("the older plan is still there")
				}
				if code != 1 || out.String() != "" {
					t.Errorf("got %d, and the child was run: %s", code, out)
				}
				return
			}
			if code != 2 {
				t.Fatalf("%d, %v", code, err)
			}
			opened, err := wraptest.Settings(t, ours).Plan().Decrypt(t.Context(), []byte(read(t, filepath.Join(dir, "p"))))
			if err != nil || !holds(t, opened.Data, canary) {
				t.Errorf("%v", err)
			}
			again, other, _ := scripted(t, newStore(t), "ready GET save="+made+" exit=2", "plan", "-detailed-exitcode", "-out=p")
			again.Keys.Plan = o.Keys.Plan
			write(t, filepath.Join(other, "p"), read(t, filepath.Join(dir, "p")))
			if code, err, told := run(t, again); code != 2 {
				t.Errorf("in the place of the first one: %d, %v, %s", code, err, told)
			}
		})
	}
}

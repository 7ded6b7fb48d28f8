package wrap_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// TestIdentityGoesAway: what was enough to encrypt before the run is enough in the end, when
// the file with the identity has gone.
//
// Promise: Runs under wrap
func TestIdentityGoesAway(t *testing.T) {
	t.Parallel()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range testkit.Some(map[string]struct {
		settings string
		isKept   bool // else nothing could show that what was encrypted can be opened
	}{
		"a key provider": {`key_provider "age" "a" { AGE }
method "aes_gcm" "m" { keys = key_provider.age.a }
state { method = method.aes_gcm.m }
plan { method = method.aes_gcm.m }`, true},
		"whole files": {`method "age" "a" { AGE }
state { method = method.age.a }
plan { method = method.age.a }`, false},
	}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "identity.txt")
			write(t, file, identity.String()+"\n")
			settings := strings.Replace(c.settings, "AGE",
				"\nidentity_files = [\""+file+"\"]\nrecipients = [\""+identity.Recipient().String()+"\"]\n", 1)
			opens := func(name string, target encryption.Target, content []byte) {
				t.Helper()
				if opened, err := target.Decrypt(t.Context(), content); err != nil || !opened.Encrypted {
					t.Errorf("%s: %v", name, err)
				}
			}
			s := newStore(t)
			gone := "move=" + file + "," + file + "-gone"
			o, dir, out := scripted(t, s, "GET "+gone+" leave=errored.tfstate POST="+state, "apply")
			o.Keys.State = wraptest.Settings(t, settings).State()
			code, err, told := run(t, o)
			if (code == 0) != c.isKept || err != nil {
				t.Errorf("%d, %v, %s\n%s", code, err, told, out)
			}
			if err := os.Rename(file+"-gone", file); err != nil {
				t.Fatal(err)
			}
			again := wraptest.Settings(t, settings)
			if c.isKept {
				opens("the state", again.State(), s.stored())
			}
			opens("errored.tfstate", again.State(), []byte(read(t, filepath.Join(dir, "errored.tfstate"))))

			made := filepath.Join(t.TempDir(), "made")
			write(t, made, planOf(t, "http", "", canary))
			o, dir, out = scripted(t, newStore(t), "GET "+gone+" save="+made, "plan", "-out=p")
			o.Keys.State, o.Keys.Plan = wraptest.Settings(t, settings).State(), wraptest.Settings(t, settings).Plan()
			if code, err, told := run(t, o); (code == 0) != c.isKept || (err == nil) != c.isKept {
				t.Fatalf("%d, %v, %s\n%s", code, err, told, out)
			}
			if err := os.Rename(file+"-gone", file); err != nil {
				t.Fatal(err)
			}
			if c.isKept {
				opens("the plan", again.Plan(), []byte(read(t, filepath.Join(dir, "p"))))
			}
		})
	}
}

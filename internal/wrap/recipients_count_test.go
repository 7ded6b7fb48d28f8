package wrap_test

import (
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// team are settings for as many recipients, of which the first opens.
func team(t *testing.T, people []*age.X25519Identity, whole bool) string {
	t.Helper()
	var recipients []string
	for _, p := range people {
		recipients = append(recipients, `"`+p.Recipient().String()+`"`)
	}
	settings := "\"a\" {\nidentities = [\"" + people[0].String() + "\"]\nrecipients = [" + strings.Join(recipients, ", ") + "]\n}\n"
	if whole {
		return "method \"age\" " + settings + "state { method = method.age.a }"
	}
	return "key_provider \"age\" " + settings + "method \"aes_gcm\" \"m\" { keys = key_provider.age.a }\nstate { method = method.aes_gcm.m }"
}

// TestRecipientsChange: wrap says so if it writes for more recipients than what it has read
// was for, or for fewer: with an old list, someone who has left reads the state again.
//
// Promise: Runs under wrap
func TestRecipientsChange(t *testing.T) {
	t.Parallel()
	var people []*age.X25519Identity
	for range 3 {
		identity, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		people = append(people, identity)
	}
	mistakes := wraptest.OpenMistakes(t, "recipients")
	for name, c := range map[string]struct {
		before, after int
		whole         bool
	}{
		"as many":         {before: 2, after: 2},
		"one more":        {before: 2, after: 3},
		"one fewer":       {before: 3, after: 2},
		"files, as many":  {before: 2, after: 2, whole: true},
		"files, one more": {before: 2, after: 3, whole: true},
		"the first":       {after: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			if c.before > 0 {
				s.put(seal(t, team(t, people[:c.before], c.whole), state))
			}
			o, _, _ := scripted(t, s, "GET POST="+state+" POST="+state, "state", "rm", "x")
			o.Keys.State = target(t, team(t, people[:c.after], c.whole))
			code, err, told := run(t, o)
			mistakes.Ended(t, name, told, code, err)
			if n := states.Recipients(s.stored()); n != c.after {
				t.Errorf("it counts %d", n)
			}
		})
	}
	if n := states.Recipients([]byte("age-encryption.org/v1\n-> X25519 a\nb\n-> %x-grease c\nd\n--- mac\n-> X25519 e\n")); n != 1 {
		t.Errorf("beside one that is for nobody, it counts %d", n)
	}
}

// TestMoveInByAFileOfTheModule: the file that a former backend names, or a variable in its
// place, is found from the module.
func TestMoveInByAFileOfTheModule(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	o, dir, out := scripted(t, s, "pulled GET", "init")
	o.Wishes.EncryptExisting = true
	o.Environ = append(o.Environ, "GOOGLE_APPLICATION_CREDENTIALS=../gcp.json", "SOME_NAME=gcp.json")
	write(t, filepath.Join(dir, "gcp.json"), canary)
	write(t, filepath.Join(dir, "..", "gcp.json"), canary)
	write(t, filepath.Join(dir, ".terraform", "terraform.tfstate"), `{"version":3,"backend":{"type":"x","config":{"bucket":"gcp.json",`+
		`"credentials":"gcp.json","key":"gcp.json","ca_file":"nowhere","inner":[{"config_path":"./gcp.json"}],"config_paths":["gcp.json","~/x"]}}}`)
	if code, err := wrap.Run(t.Context(), o); code != 0 || err != nil {
		t.Fatalf("%d, %v\n%s", code, err, out)
	}
	opened, err := o.Keys.State.Decrypt(t.Context(), s.stored())
	if err != nil {
		t.Fatal(err)
	}
	dir, _ = filepath.EvalSymlinks(dir)
	want := strings.ReplaceAll(`{"bucket":"gcp.json","ca_file":"nowhere","config_paths":["DIR/gcp.json","~/x"],"credentials":"DIR/gcp.json",`+
		`"inner":[{"config_path":"DIR/./gcp.json"}],"key":"gcp.json"}}}}DIR/../gcp.json`, "DIR", dir)
	if text := strings.ReplaceAll(string(opened.Data), "\\", ""); !strings.Contains(text, want) {
		t.Errorf("it was asked for with %s\nwant %s", text, want)
	}
}

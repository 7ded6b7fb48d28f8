package wrap_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// worded returns settings with a passphrase, and more arguments.
func worded(more string) string {
	return fmt.Sprintf("key_provider \"pbkdf2\" \"p\" {\n  passphrase = \"a passphrase of this run\"\n  %s\n}\n"+
		"method \"aes_gcm\" \"m\" { keys = key_provider.pbkdf2.p }\nstate { method = method.aes_gcm.m }\n", more)
}

// TestRunDerives: a run derives the key of the state that it reads and, if it may write one, a key of its own: for the
// rehearsal only if that of the state does not do. Where a state could not be sealed, the child gets none.
//
// Promise: Runs under wrap (the rehearsal)
func TestRunDerives(t *testing.T) {
	t.Parallel()
	mistakes := wraptest.OpenMistakes(t, "derived keys")
	for name, c := range map[string]struct {
		script, command string
		settings        string // more than those of the state
		none            bool   // there is no state
		keys            int64
		fails           bool
	}{
		"nothing changes":        {script: "LOCK={} GET GET UNLOCK={}", command: "apply", keys: 1},
		"a change":               {script: "LOCK={} GET POST=" + state + " POST=" + state + " UNLOCK={}", command: "apply", keys: 2},
		"a plan":                 {script: "LOCK={} GET UNLOCK={}", command: "plan", keys: 1},
		"a plan without a state": {script: "GET", command: "plan", none: true},
		"no state":               {script: "GET", command: "apply", none: true, keys: 1},
		"another salt":           {script: "LOCK={} GET POST=" + state + " UNLOCK={}", command: "apply", settings: "salt_length = 16", keys: 2},
		"no key of AES":          {script: "LOCK={} GET POST=" + state, command: "apply", settings: "key_length = 20", keys: 2, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registry, derived := lighttest.Counting()
			load := func(registry encryption.Registry, settings string) encryption.Target {
				enc, err := encryption.Load(registry, encryption.Code(settings, "test.hcl"))
				if err != nil {
					t.Fatal(err)
				}
				return enc.State()
			}
			s := newStore(t)
			sealed, err := load(lighttest.Registry(), worded("")).Encrypt(t.Context(), []byte(state))
			if err != nil {
				t.Fatal(err)
			}
			if !c.none {
				s.put(sealed)
			}
			o, _, _ := scripted(t, s, c.script, c.command)
			o.Keys.State = load(registry, worded(c.settings))
			code, err, told := run(t, o)
			if derived.Load() != c.keys || (code != 0) != c.fails {
				t.Errorf("%d keys derived, code %d, %v", derived.Load(), code, err)
			}
			if c.fails {
				mistakes.Ended(t, name, told, code, err)
			}
			stored := s.stored()
			if name == "a change" || name == "another salt" {
				if bytes.Equal(metadata(t, stored), metadata(t, sealed)) {
					t.Error("the state has the salt of the one that was read")
				}
			} else if !c.none && !bytes.Equal(stored, sealed) {
				t.Errorf("the state has changed: %s", stored)
			}
		})
	}
}

func metadata(t *testing.T, file []byte) []byte {
	t.Helper()
	var envelope struct{ Meta map[string][]byte }
	if err := json.Unmarshal(file, &envelope); err != nil || envelope.Meta["key_provider.pbkdf2.p"] == nil {
		t.Fatalf("%v: %s", err, file)
	}
	return envelope.Meta["key_provider.pbkdf2.p"]
}

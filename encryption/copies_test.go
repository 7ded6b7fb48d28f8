package encryption_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
)

// TestCopies: the serial and the lineage beside the encrypted data are copies of
// those inside. Whoever can write the file can write others there, and where
// there were none.
//
// Promise: Authentication
func TestCopies(t *testing.T) {
	t.Parallel()
	const (
		bare = `{"version":4,"outputs":{},"resources":[]}`
		null = `{"version":4,"serial":null,"lineage":null,"outputs":{},"resources":[]}`
	)
	enc, says := newEncryption(t, lighttest.Registry(), keys), golden(t, "copies")
	for name, c := range map[string]struct {
		plain   string
		copies  map[string]any
		refused bool
	}{
		"none at all":              {plain: bare},
		"none beside":              {plain: state, copies: map[string]any{"serial": nil, "lineage": nil}},
		"null beside":              {plain: null, copies: map[string]any{"serial": nil, "lineage": nil}},
		"an empty lineage beside":  {plain: bare, copies: map[string]any{"lineage": ""}},
		"serial with none inside":  {plain: bare, copies: map[string]any{"serial": 7}, refused: true},
		"serial with null inside":  {plain: null, copies: map[string]any{"serial": 0}, refused: true},
		"lineage with none inside": {plain: bare, copies: map[string]any{"lineage": "l-1"}, refused: true},
		"lineage with null inside": {plain: null, copies: map[string]any{"lineage": "l-1"}, refused: true},
		"a smaller serial":         {plain: state, copies: map[string]any{"serial": 6}, refused: true},
		"a larger serial":          {plain: state, copies: map[string]any{"serial": 8}, refused: true},
		"another lineage":          {plain: state, copies: map[string]any{"lineage": "l-2"}, refused: true},
		"a part of the lineage":    {plain: state, copies: map[string]any{"lineage": "l-"}, refused: true},
		"serial is text":           {plain: state, copies: map[string]any{"serial": "7"}, refused: true},
		"lineage is 7":             {plain: state, copies: map[string]any{"lineage": 7}, refused: true},
		"meta is text":             {plain: state, copies: map[string]any{"meta": "x"}, refused: true},
	} {
		var file map[string]any
		if err := json.Unmarshal(seal(t, keys+`state { method = method.aes_gcm.a }`, c.plain), &file); err != nil {
			t.Fatal(err)
		}
		for member, value := range c.copies {
			file[member] = value
		}
		changed, err := json.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		opened, err := use(t, enc, "method.aes_gcm.a").Decrypt(t.Context(), changed)
		switch {
		case c.refused:
			if says.Error(t, name, err); !errors.Is(err, encryption.ErrDamaged) {
				t.Errorf("%s: got %v", name, err)
			}
		case err != nil || string(opened.Data) != c.plain:
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCopiesOfAPlan: a plan has no serial and no lineage, so nobody wrote one
// beside it.
func TestCopiesOfAPlan(t *testing.T) {
	t.Parallel()
	target := use(t, newEncryption(t, lighttest.Registry(), keys), "method.aes_gcm.a")
	sealed, err := newEncryption(t, lighttest.Registry(), keys+`plan { method = method.aes_gcm.a }`).Plan().Encrypt(t.Context(), []byte(plan))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := target.Decrypt(t.Context(), sealed); err != nil {
		t.Error(err)
	}
	for _, beside := range []string{`"serial":7`, `"lineage":"l-1"`} {
		changed := append([]byte("{"+beside+","), sealed[1:]...)
		if _, err := target.Decrypt(t.Context(), changed); !errors.Is(err, encryption.ErrDamaged) {
			t.Errorf("%s beside a plan: %v", beside, err)
		}
	}
}

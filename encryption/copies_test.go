package encryption_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
)

// TestCopies: the serial and the lineage beside the encrypted data are copies of
// those inside. Whoever can write the file can write others there, and where
// there were none.
func TestCopies(t *testing.T) {
	t.Parallel()
	const (
		bare = `{"version":4,"outputs":{},"resources":[]}`
		null = `{"version":4,"serial":null,"lineage":null,"outputs":{},"resources":[]}`
	)
	enc := newEncryption(t, lighttest.Registry(), keys)
	for name, c := range map[string]struct {
		plain  string
		copies map[string]any
		want   string // "" when it opens
	}{
		"none at all":             {plain: bare},
		"none beside":             {plain: state, copies: map[string]any{"serial": nil, "lineage": nil}},
		"null beside":             {plain: null, copies: map[string]any{"serial": nil, "lineage": nil}},
		"an empty lineage beside": {plain: bare, copies: map[string]any{"lineage": ""}},
		"serial with none inside": {plain: bare, copies: map[string]any{"serial": 7},
			want: "there is a serial (7) beside the encrypted data, but none inside"},
		"serial with null inside": {plain: null, copies: map[string]any{"serial": 0},
			want: "there is a serial (0) beside the encrypted data, but none inside"},
		"lineage with none inside": {plain: bare, copies: map[string]any{"lineage": "l-1"},
			want: "there is a lineage beside the encrypted data, but none inside"},
		"lineage with null inside": {plain: null, copies: map[string]any{"lineage": "l-1"},
			want: "there is a lineage beside the encrypted data, but none inside"},
		"a smaller serial":      {plain: state, copies: map[string]any{"serial": 6}, want: "the serial beside the encrypted data (6)"},
		"a larger serial":       {plain: state, copies: map[string]any{"serial": 8}, want: "the serial beside the encrypted data (8)"},
		"another lineage":       {plain: state, copies: map[string]any{"lineage": "l-2"}, want: "the lineage beside the encrypted data"},
		"a part of the lineage": {plain: state, copies: map[string]any{"lineage": "l-"}, want: "the lineage beside the encrypted data"},
		"serial is text":        {plain: state, copies: map[string]any{"serial": "7"}, want: `"serial" must be a whole number`},
		"lineage is 7":          {plain: state, copies: map[string]any{"lineage": 7}, want: `"lineage" must be a string`},
		"meta is text":          {plain: state, copies: map[string]any{"meta": "x"}, want: `"meta" must be an object`},
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
		case c.want == "" && (err != nil || string(opened.Data) != c.plain):
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (!errors.Is(err, encryption.ErrDamaged) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %s", name, err, c.want)
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

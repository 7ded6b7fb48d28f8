package encryption_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
)

// TestOpen: users who do not encrypt notice nothing, and those who do get what
// they encrypted and nothing else.
//
// Promise: Plain states
func TestOpen(t *testing.T) {
	t.Parallel()
	settings := func(key string) string {
		return `key_provider "static" "k" { key = "` + strings.Repeat(key, 32) + `" }
method "aes_gcm" "m" { keys = key_provider.static.k }
state {
	method   = method.aes_gcm.m
	enforced = true
}`
	}
	enc, err := encryption.Load(lighttest.Registry(), encryption.Code(settings("00"), "code"))
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := enc.State().Encrypt(t.Context(), []byte(state))
	if err != nil {
		t.Fatal(err)
	}
	says := golden(t, "opening")
	for name, c := range map[string]struct {
		settings, file string
		reason         error
		refused        bool // for another reason
	}{
		"plaintext":                     {file: state},
		"encrypted":                     {settings: settings("00"), file: string(sealed)},
		"encrypted, without settings":   {file: string(sealed), reason: encryption.ErrNotConfigured},
		"encrypted with something else": {settings: settings("11"), file: string(sealed), reason: encryption.ErrNoKey},
		"plaintext in its place":        {settings: settings("00"), file: state, reason: encryption.ErrPlaintext},
		"cut off":                       {settings: settings("00"), file: string(sealed[:100]), reason: encryption.ErrDamaged},
		"empty":                         {reason: encryption.ErrDamaged},
		"the record of a backend":       {file: `{"version":3,"backend":{"type":"s3","config":{}}}`, reason: encryption.ErrBackendRecord},
		"not settings":                  {settings: "nonsense {}", file: state, refused: true},
	} {
		file := []byte(c.file)
		opened, err := encryption.Open(t.Context(), lighttest.Registry(), file, encryption.Environment(variables("TF_ENCRYPTION", c.settings)))
		switch {
		case c.reason == nil && !c.refused:
			if err != nil || string(opened.Data) != state || !bytes.Equal(file, []byte(c.file)) {
				t.Errorf("%s: %+v, %v", name, opened, err)
			}
		case opened != nil || c.reason != nil && !errors.Is(err, c.reason):
			t.Errorf("%s: %+v, %v", name, opened, err)
		default:
			says.Error(t, name, err)
		}
	}
	if opened, err := encryption.Open(t.Context(), lighttest.Registry(), []byte(state)); err != nil || opened.Encrypted {
		t.Errorf("without an environment: %+v, %v", opened, err)
	}
}

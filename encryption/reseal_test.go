package encryption_test

import (
	"bytes"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/light/lighttest"
)

const changed = `{"version":4,"terraform_version":"1.12.6","serial":8,"lineage":"l-1","outputs":{},"resources":[]}`

// TestReseal: a tool reads, changes and writes a state back in the same way with settings
// and without any.
//
// Promise: Sealing again
func TestReseal(t *testing.T) {
	t.Parallel()
	sealed := string(seal(t, all, state))
	for name, c := range map[string]struct {
		settings, file string
		plain          bool   // what is written
		method         string // that opens it again
	}{
		"without settings":     {file: state, plain: true},
		"with settings":        {settings: all, file: sealed, method: "method.aes_gcm.a"},
		"another key is first": {settings: rotating("aes_gcm.b", "aes_gcm.a"), file: sealed, method: "method.aes_gcm.b"},
		"encrypted from now":   {settings: rotating("aes_gcm.a", "unencrypted.u"), file: state, method: "method.aes_gcm.a"},
		"encrypted no more":    {settings: rotating("unencrypted.u", "aes_gcm.a"), file: sealed, plain: true, method: "method.unencrypted.u"},
		"plaintext by name":    {settings: rotating("unencrypted.u", "unencrypted.u"), file: state, plain: true, method: "method.unencrypted.u"},
	} {
		target := newEncryption(t, lighttest.Registry(), c.settings).State()
		opened, err := target.Decrypt(t.Context(), []byte(c.file))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		plain := []byte(changed)
		written, err := opened.Reseal(t.Context(), plain)
		if err != nil || c.plain != (string(written) == changed) {
			t.Errorf("%s: got %s, %v", name, written, err)
			continue
		}
		clear(plain) // what was written is a copy
		again, err := target.Decrypt(t.Context(), bytes.Clone(written))
		if err != nil || string(again.Data) != changed || again.Method != c.method || again.Encrypted == c.plain {
			t.Errorf("%s: got %+v, %v", name, again, err)
		}
	}
}

func rotating(first, second string) string {
	return keys + "state {\nmethod = method." + first + "\nfallback { method = method." + second + " }\n}"
}

// TestResealFailsClosed: plaintext comes out only for what came in so, and where it may.
//
// Promise: Sealing again
func TestResealFailsClosed(t *testing.T) {
	t.Parallel()
	none, strict := newEncryption(t, lighttest.Registry(), ""), newEncryption(t, lighttest.Registry(), all)
	read := func(target encryption.Target, file string) *encryption.Opened {
		opened, err := target.Decrypt(t.Context(), []byte(file))
		if err != nil {
			t.Fatal(err)
		}
		return opened
	}
	asPlain := read(none.State(), state)
	made := &encryption.Opened{Data: asPlain.Data, Kind: asPlain.Kind}
	touched := *read(strict.State(), string(seal(t, all, state)))
	touched.Encrypted, touched.Method = false, ""
	for name, c := range map[string]struct {
		opened *encryption.Opened
		plain  string
		want   string // reason
	}{
		"nothing was opened":            {plain: changed, want: "not configured"},
		"nobody opened it":              {opened: made, plain: changed, want: "not configured"},
		"a method let it pass":          {opened: read(use(t, none, "unencrypted"), state), plain: "hello", want: "other"},
		"a plan in place of a state":    {opened: asPlain, plain: plan, want: "other"},
		"an encrypted one in its place": {opened: asPlain, plain: string(seal(t, all, state)), want: "other"},
		"another format in its place":   {opened: asPlain, plain: `{"version":4,"sops":{"mac":"x","version":"3"}}`, want: "other"},
		"a state that is cut off":       {opened: asPlain, plain: changed[:20], want: "other"},
		"no bytes":                      {opened: asPlain, want: "other"},
	} {
		written, err := c.opened.Reseal(t.Context(), []byte(c.plain))
		if got := reason(t, err); got != c.want || written != nil {
			t.Errorf("%s: got %q, want %q: %s, %v", name, got, c.want, written, err)
		}
	}
	file, err := touched.Reseal(t.Context(), []byte(changed))
	if info, _ := encryption.Inspect(file); err != nil || info.Kind != encryption.KindEncrypted {
		t.Errorf("what a program wrote over made it plaintext: %s, %v", file, err)
	}
}

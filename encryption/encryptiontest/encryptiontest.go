// Package encryptiontest is the test that every key provider and every method
// must pass. Write a harness of a dozen lines, and call Run.
package encryptiontest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
)

// patience is what hostile input may cost. The race detector slows much down.
const patience = 20 * time.Second

// KeyProvider is the harness of a key provider.
type KeyProvider struct {
	Block encryption.Block[encryption.KeyProvider]

	Attrs map[string]cty.Value   // a configuration that works
	Other map[string]cty.Value   // one that works and has another key
	Bad   []map[string]cty.Value // some that must be refused

	Keys    encryption.Keys // the key providers that Attrs and Other refer to; may be nil
	Secrets []string        // what stands in the configurations and must never come out
}

// Run runs the test.
func (h KeyProvider) Run(t *testing.T) {
	t.Run("table", func(t *testing.T) { checkTable(t, h.Block.Table) })
	t.Run("bad configuration", func(t *testing.T) {
		for i, attrs := range h.Bad {
			provider, err := build(h.Block, attrs)
			if err == nil {
				_, err = provider.Key(t.Context(), h.Keys, nil)
			}
			if err == nil {
				t.Errorf("configuration %d is accepted", i)
			}
			noSecret(t, err, h.Secrets)
		}
	})
	t.Run("same key again", h.sameKey)
	t.Run("another key", h.anotherKey)
	t.Run("hostile metadata", h.hostile)
}

func (h KeyProvider) sameKey(t *testing.T) {
	provider := Build(t, h.Block, h.Attrs)
	maker, ok := provider.(encryption.KeyMaker)
	if !ok {
		t.Skip("it makes no keys")
	}
	key, stored, err := maker.NewKey(t.Context(), h.Keys)
	if err != nil || len(key) == 0 {
		t.Fatalf("a new key: %d bytes, %v", len(key), err)
	}
	if stored != nil && !json.Valid(stored) {
		t.Errorf("what is stored is not JSON: %q", stored)
	}
	if bytes.Contains(stored, key) {
		t.Error("the key itself is stored")
	}
	for _, p := range []encryption.KeyProvider{provider, Build(t, h.Block, h.Attrs)} {
		again, err := p.Key(t.Context(), h.Keys, stored)
		if err != nil || !bytes.Equal(again, key) {
			t.Errorf("the same key did not come back: %v", err)
		}
	}
	if r, ok := provider.(encryption.Recognizer); ok {
		if !r.Recognizes(stored) {
			t.Error("it does not recognize its own metadata")
		}
		for _, foreign := range []string{`{}`, `{"x":1}`, `[]`, `null`, `"x"`, ``} {
			if r.Recognizes(json.RawMessage(foreign)) {
				t.Errorf("it recognizes %s", foreign)
			}
		}
	}
}

func (h KeyProvider) anotherKey(t *testing.T) {
	maker, ok := Build(t, h.Block, h.Attrs).(encryption.KeyMaker)
	if !ok {
		t.Skip("it makes no keys")
	}
	key, stored, err := maker.NewKey(t.Context(), h.Keys)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Build(t, h.Block, h.Other).Key(t.Context(), h.Keys, stored)
	if err == nil && bytes.Equal(other, key) {
		t.Error("another configuration gives the same key")
	}
	if err != nil && !errors.Is(err, encryption.ErrNoKey) {
		t.Errorf("the error of a wrong key must wrap ErrNoKey: %v", err)
	}
}

// hostile hands in what a file may hold that somebody tampered with.
func (h KeyProvider) hostile(t *testing.T) {
	provider := Build(t, h.Block, h.Attrs)
	documents := []string{``, `{`, `{}`, `[]`, `null`, `"x"`, `1e999`, `{"salt":1}`, strings.Repeat("[", 100_000)}
	if maker, ok := provider.(encryption.KeyMaker); ok {
		if _, stored, err := maker.NewKey(t.Context(), h.Keys); err == nil && stored != nil {
			documents = append(documents, damage(t, stored)...)
		}
	}
	for _, d := range documents {
		start := time.Now()
		_, err := provider.Key(t.Context(), h.Keys, json.RawMessage(d))
		if took := time.Since(start); took > patience {
			t.Errorf("%.200s took %v", d, took)
		}
		noSecret(t, err, h.Secrets)
	}
}

// damage puts extreme values in the place of each member of a document.
func damage(t *testing.T, stored json.RawMessage) []string {
	t.Helper()
	out := []string{string(stored[:len(stored)/2])}
	var members map[string]any
	if json.Unmarshal(stored, &members) != nil {
		return out // it is no object, which is fine
	}
	for name, original := range members {
		for _, v := range []any{nil, "", -1, 0, 1 << 62, 1e300, 0.5, []any{}, map[string]any{}, strings.Repeat("A", 1<<20)} {
			members[name] = v
			b, err := json.Marshal(members)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(b))
		}
		members[name] = original
	}
	return out
}

// Method is the harness of a method for the data of an envelope.
type Method struct {
	Block encryption.Block[encryption.Method]

	Attrs map[string]cty.Value   // a configuration that works
	Bad   []map[string]cty.Value // some that must be refused

	Keys  encryption.Keys // the key providers that Attrs refers to
	Other encryption.Keys // the same with other keys
}

// Run runs the test.
func (h Method) Run(t *testing.T) {
	t.Run("table", func(t *testing.T) {
		checkTable(t, h.Block.Table)
		if _, has := h.Block.Attr("then"); has {
			t.Error("then is for methods for whole files, see FileMethod")
		}
	})
	t.Run("bad configuration", func(t *testing.T) {
		for i, attrs := range h.Bad {
			if _, err := build(h.Block, attrs); err == nil {
				t.Errorf("configuration %d is accepted", i)
			}
		}
	})
	method, err := build(h.Block, h.Attrs)
	if err != nil {
		t.Fatal(err)
	}
	encrypter, ok := method.(encryption.Encrypter)
	if !ok {
		t.Skip("it does not seal")
	}
	plain := []byte(`{"version":4,"outputs":{"secret":{"value":"canary","type":"string"}}}`)
	sealed, err := encrypter.Encrypt(t.Context(), h.Keys, bytes.Clone(plain))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("round trip", func(t *testing.T) {
		opened, err := method.Decrypt(t.Context(), h.Keys, bytes.Clone(sealed))
		if err != nil || !bytes.Equal(opened, plain) {
			t.Errorf("got %q, %v", opened, err)
		}
		again, err := encrypter.Encrypt(t.Context(), h.Keys, bytes.Clone(plain))
		if err != nil || bytes.Equal(again, sealed) {
			t.Errorf("sealing twice must not give the same bytes (%v)", err)
		}
		if bytes.Contains(sealed, []byte("canary")) {
			t.Error("the plaintext shows")
		}
	})
	t.Run("another key", func(t *testing.T) {
		opened, err := method.Decrypt(t.Context(), h.Other, bytes.Clone(sealed))
		if opened != nil || !errors.Is(err, encryption.ErrNoKey) {
			t.Errorf("got %q, %v", opened, err)
		}
	})
	t.Run("no key", func(t *testing.T) {
		failure := errors.New("the key service is away")
		none := func(context.Context, string) ([]byte, error) { return nil, failure }
		if opened, err := method.Decrypt(t.Context(), none, bytes.Clone(sealed)); opened != nil || !errors.Is(err, failure) {
			t.Errorf("got %q, %v", opened, err)
		}
	})
	t.Run("damage", func(t *testing.T) {
		Damage(t, sealed, func(file []byte) (string, error) {
			opened, err := method.Decrypt(t.Context(), h.Keys, file)
			return string(opened), err
		})
	})
}

// build does what a configuration does with an entry of the kind.
func build[T any](block encryption.Block[T], attrs map[string]cty.Value) (T, error) {
	values, err := attr.NewEntry("test."+block.Name+".x", block.Table, attrs).Decode(block.Table, nil)
	if err != nil {
		var none T
		return none, err
	}
	return block.Build(values)
}

// checkTable looks at what the documentation and the schemas are made from.
func checkTable(t *testing.T, table attr.Table) {
	t.Helper()
	if table.Name == "" || table.Doc == "" {
		t.Error("the kind has no name or no documentation")
	}
	seen := map[string]bool{}
	for _, a := range config.WithCommon(table).Attrs {
		if a.Name == "" || a.Doc == "" || !strings.HasSuffix(a.Doc, ".") {
			t.Errorf("%q has no name or no documentation in sentences", a.Name)
		}
		if seen[a.Name] || a.Name == "name" || a.Name == "provider" {
			t.Errorf("%q is there twice or reserved", a.Name)
		}
		seen[a.Name] = true
		if (a.Type == cty.NilType) == (a.Attrs == nil) {
			t.Errorf("%q must have either a type or attributes of its own", a.Name)
		}
		if a.Required && a.Default != cty.NilVal {
			t.Errorf("%q is required and has a default", a.Name)
		}
	}
}

func noSecret(t *testing.T, err error, secrets []string) {
	t.Helper()
	for _, s := range secrets {
		if err != nil && strings.Contains(err.Error(), s) {
			t.Errorf("an error holds a secret: %v", err)
		}
	}
}

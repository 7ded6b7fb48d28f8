// Package encryptiontest provides the test that every key provider and every method must pass.
// Write a harness of a dozen lines, and call its Run method.
package encryptiontest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/entries"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/probe"
)

// patience is the maximum time that hostile input may take. It is long because code is slow under
// the race detector.
const patience = time.Minute

// KeyProvider is the test harness for a key provider.
type KeyProvider struct {
	Block driver.Block[driver.KeyProvider]

	Attrs map[string]cty.Value   // a working configuration
	Other map[string]cty.Value   // a working configuration with another key
	Bad   []map[string]cty.Value // configurations that must be refused

	Keys    driver.Keys // the key providers that Attrs and Other refer to; may be nil; called from several goroutines
	Secrets []string    // secrets in the configurations, which must never be shown

	// Constant means that only the configuration determines the key, so that the key is the same
	// for every file, regardless of the metadata.
	Constant bool

	limit time.Duration // the default is patience
}

// Run runs the tests as subtests of t. They cover Build, the table, bad configurations, new keys,
// getting a key again, many keys at once, another key, missing metadata, missing keys of other key
// providers, cancelled contexts, and hostile metadata. For a [driver.Closer], they also cover
// requests for keys after Close.
func (h KeyProvider) Run(t *testing.T) {
	if !t.Run("build", func(t *testing.T) { Build(t, h.Block, h.Attrs) }) {
		return
	}
	t.Run("table", func(t *testing.T) {
		checkTable(t, h.Block.Table)
		checkMarks(t, h.Block.Table, h.Attrs, h.Secrets)
	})
	t.Run("bad configuration", func(t *testing.T) {
		for i, attrs := range h.Bad {
			err := h.refusal(t, attrs)
			if err == nil {
				t.Errorf("configuration %d is accepted", i)
			}
			noSecret(t, err, probe.Spellings(h.Secrets))
		}
	})
	t.Run("same key again", h.sameKey)
	t.Run("new keys", h.newKeys)
	t.Run("at once", h.atOnce)
	t.Run("closed", h.closed)
	t.Run("another key", h.anotherKey)
	t.Run("nothing stored", h.nothingStored)
	t.Run("keys of others", h.keysOfOthers)
	t.Run("context", h.context)
	t.Run("hostile metadata", h.hostile)
}

// refusal builds a key provider from attrs and asks it for a key. It returns the error of either
// step. It asks with valid metadata, because without metadata there might be no key anyway.
func (h KeyProvider) refusal(t *testing.T, attrs map[string]cty.Value) error {
	t.Helper()
	provider, err := build(h.Block, attrs)
	if err != nil {
		return err
	}
	var stored json.RawMessage
	if m, ok := Build(t, h.Block, h.Attrs).(driver.KeyMaker); ok {
		if _, stored, err = m.NewKey(context.WithValue(t.Context(), mark{}, true), h.marked(t)); err != nil {
			t.Fatal(err)
		}
	}
	_, err = h.ask(t, t.Context(), provider, stored)
	return err
}

// ask calls Key, and checks everything that must hold for each call.
func (h KeyProvider) ask(t *testing.T, ctx context.Context, provider driver.KeyProvider, stored json.RawMessage) ([]byte, error) {
	t.Helper()
	ctx = context.WithValue(ctx, mark{}, true)
	given := bytes.Clone(stored)
	key, err := within(t, cmp.Or(h.limit, patience), stored, func() ([]byte, error) { return provider.Key(ctx, h.marked(t), given) })
	if !bytes.Equal(given, stored) {
		t.Errorf("it changes what is stored, %.200q", stored)
	}
	if err != nil && key != nil {
		t.Errorf("a key comes with an error: %v", err)
	}
	noSecret(t, err, probe.Spellings(h.Secrets))
	if err != nil {
		checkShown(t, err)
	}
	return key, err
}

type mark struct{}

// marked returns a version of Keys that checks its context. It must be called with the context of
// the call, or with one that is derived from it.
func (h KeyProvider) marked(t *testing.T) driver.Keys {
	if h.Keys == nil {
		return nil
	}
	return func(ctx context.Context, address string) ([]byte, error) {
		if ctx.Value(mark{}) == nil {
			t.Errorf("%s is asked for with another context", address)
		}
		return h.Keys(ctx, address)
	}
}

type maker interface {
	driver.KeyProvider
	driver.KeyMaker
}

// maker returns the key provider as one that makes keys, together with a new key. It skips the test
// if the key provider makes no keys.
func (h KeyProvider) maker(t *testing.T) (m maker, key []byte, stored json.RawMessage) {
	t.Helper()
	m, ok := Build(t, h.Block, h.Attrs).(maker)
	if !ok {
		t.Skip("it makes no keys")
	}
	key, stored, err := m.NewKey(context.WithValue(t.Context(), mark{}, true), h.marked(t))
	if err != nil || len(key) == 0 {
		t.Fatalf("a new key: %d bytes, %v", len(key), err)
	}
	return m, bytes.Clone(key), bytes.Clone(stored)
}

// within runs call. It reports an error if call panics, or takes longer than limit. Input is shown
// in the error.
func within(t *testing.T, limit time.Duration, input []byte, call func() ([]byte, error)) ([]byte, error) {
	t.Helper()
	var got []byte
	var err error
	var panicked any
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { panicked = recover() }()
		got, err = call()
	}()
	select {
	case <-done:
		if panicked != nil {
			t.Errorf("%.200q: it panics: %v", input, panicked)
			return nil, errors.New("a panic")
		}
		return got, err
	case <-time.After(limit):
		t.Errorf("%.200q takes longer than %v", input, limit)
		return nil, errors.New("no end")
	}
}

func (h KeyProvider) sameKey(t *testing.T) {
	maker, key, stored := h.maker(t)
	if stored != nil && !json.Valid(stored) {
		t.Errorf("what is stored is not JSON: %q", stored)
	}
	for _, secret := range append(probe.SpellingsOf(key), probe.Spellings(h.Secrets)...) {
		if bytes.Contains(stored, []byte(secret)) {
			t.Error("the key or a secret is stored")
		}
	}
	for _, p := range []driver.KeyProvider{maker, maker, Build(t, h.Block, h.Attrs)} {
		again, err := h.ask(t, t.Context(), p, stored)
		if err != nil || !bytes.Equal(again, key) {
			t.Errorf("the same key did not come back: %v", err)
		}
		clear(again) // the key belongs to the caller
	}
	if r, ok := maker.(driver.Recognizer); ok {
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

// newKeys makes two keys, and checks that both remain valid and share no memory.
func (h KeyProvider) newKeys(t *testing.T) {
	maker, key, stored := h.maker(t)
	second, document, err := maker.NewKey(context.WithValue(t.Context(), mark{}, true), h.marked(t))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(second, key) != h.Constant {
		t.Errorf("two new keys are the same: %t, want %t", !h.Constant, h.Constant)
	}
	want := bytes.Clone(second)
	clear(second) // the key belongs to the caller
	first, err1 := h.ask(t, t.Context(), maker, stored)
	last, err2 := h.ask(t, t.Context(), maker, document)
	if err := cmp.Or(err1, err2); err != nil || !bytes.Equal(first, key) || !bytes.Equal(last, want) {
		t.Errorf("after another key was made or asked for, one is lost: %v", err)
	}
	if salter, ok := maker.(driver.Salter); ok {
		h.newDocuments(t, salter, stored)
	}
}

// newDocuments compares the documents that a [driver.Salter] makes with a document from its NewKey.
func (h KeyProvider) newDocuments(t *testing.T, salter driver.Salter, stored json.RawMessage) {
	t.Helper()
	one, other := salter.NewDocument(), salter.NewDocument()
	if bytes.Equal(one, other) {
		t.Error("two new documents have the same salt")
	}
	for _, document := range []json.RawMessage{stored, one, other} {
		if !salter.IsCurrent(document) {
			t.Errorf("it does not make %s, which it has made", document)
		}
	}
	for _, foreign := range []string{"", "{}", "[]", "null"} {
		if salter.IsCurrent(json.RawMessage(foreign)) {
			t.Errorf("it makes %q", foreign)
		}
	}
}

func (h KeyProvider) anotherKey(t *testing.T) {
	_, key, stored := h.maker(t)
	other, err := h.ask(t, t.Context(), Build(t, h.Block, h.Other), stored)
	if err == nil && bytes.Equal(other, key) {
		t.Error("another configuration gives the same key")
	}
	if err != nil && !errors.Is(err, encryption.ErrNoKey) {
		t.Errorf("the error of a wrong key must wrap ErrNoKey: %v", err)
	}
}

func (h KeyProvider) nothingStored(t *testing.T) {
	maker, key, _ := h.maker(t)
	got, err := h.ask(t, t.Context(), maker, nil)
	switch {
	case err == nil && !(h.Constant && bytes.Equal(got, key)):
		t.Error("without metadata, there is a key")
	case err != nil && !errors.Is(err, encryption.ErrNoKey):
		t.Errorf("without metadata, the error must wrap ErrNoKey: %v", err)
	}
}

// keysOfOthers takes away the key that a key provider builds on. It checks that the key provider
// then returns no key, and that the error keeps the reason.
func (h KeyProvider) keysOfOthers(t *testing.T) {
	if h.Keys == nil {
		t.Skip("it builds on no other key")
	}
	_, _, stored := h.maker(t)
	for _, reason := range []error{encryption.ErrNoKey, errors.New("the key service is away")} {
		h.Keys = func(context.Context, string) ([]byte, error) { return nil, fmt.Errorf("upstream: %w", reason) }
		provider := Build(t, h.Block, h.Attrs)
		if _, err := h.ask(t, t.Context(), provider, stored); !errors.Is(err, reason) {
			t.Errorf("another key is missing (%v), and it says %v", reason, err)
		}
		if _, _, err := provider.(maker).NewKey(t.Context(), h.Keys); err == nil {
			t.Errorf("another key is missing (%v), and it makes a new one", reason)
		}
	}
}

func (h KeyProvider) context(t *testing.T) {
	maker, key, stored := h.maker(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got, err := h.ask(t, ctx, maker, stored)
	if err == nil && !bytes.Equal(got, key) || errors.Is(err, encryption.ErrNoKey) {
		t.Errorf("a cancelled call gives %d bytes: %v", len(got), err)
	}
}

// hostile passes metadata that an attacker may have put into a file. The key provider must return
// no key except the key of the undamaged file, and no error may show that key.
func (h KeyProvider) hostile(t *testing.T) {
	provider := Build(t, h.Block, h.Attrs)
	documents := []string{``, `{`, `{}`, `[]`, `null`, `"x"`, `1e999`, `{"salt":1}`, "\x1b[2J", strings.Repeat("[", 100_000)}
	var key []byte
	if _, ok := provider.(driver.KeyMaker); ok {
		var stored json.RawMessage
		_, key, stored = h.maker(t)
		if _, err := h.ask(t, t.Context(), provider, stored); err != nil { // the key provider may remember the key
			t.Error(err)
		}
		if stored != nil {
			documents = append(documents, damagedMetadata(t, stored)...)
		}
		for _, garbage := range []string{"x", "{}", string(stored)} {
			if _, err := h.ask(t, t.Context(), provider, append(bytes.Clone(stored), garbage...)); err == nil && !h.Constant {
				t.Errorf("it reads over %.100q behind its metadata", garbage)
			}
		}
	}
	for _, d := range documents {
		got, err := h.ask(t, t.Context(), provider, json.RawMessage(d))
		if err == nil && key != nil && !bytes.Equal(got, key) {
			t.Errorf("%.200s gives another key", d)
		}
		noSecret(t, err, probe.SpellingsOf(key))
	}
}

// damagedMetadata returns half of a document, and copies of the document in which one member has an
// extreme value.
func damagedMetadata(t *testing.T, stored json.RawMessage) []string {
	t.Helper()
	out := []string{string(stored[:len(stored)/2])}
	var members map[string]any
	if json.Unmarshal(stored, &members) != nil {
		return out // a document need not be an object
	}
	for name, original := range members {
		for _, v := range []any{nil, "", -1, 0, int64(1) << 62, 1e300, 0.5, []any{}, map[string]any{}, strings.Repeat("A", 1<<20)} {
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

// Method is the test harness for a method.
type Method struct {
	Block driver.Block[driver.Method]

	Attrs map[string]cty.Value   // a working configuration
	Bad   []map[string]cty.Value // configurations that must be refused, at the latest when a file is opened

	Secrets []string // secrets in the configurations, which must never be shown

	// These fields are required for a method that reads envelopes and refers to key providers.
	Keys      driver.Keys // the key providers that Attrs refers to; called from several goroutines
	OtherKeys driver.Keys // the same key providers with other keys

	Other map[string]cty.Value // a working configuration with another key; required for all other methods

	// These fields are also required for a method for whole files, whose Block has OwnFormat.
	File, Plain []byte // a file encrypted for Attrs, if possible by the format's own tool, and its plaintext

	// Harmless is for whole files, too. It reports whether damage to File may go unnoticed. The
	// damaged file has one flipped bit in the byte at index at, or ends at that index. If Harmless
	// is nil, all damage must be noticed.
	Harmless func(damaged []byte, at int) bool
}

// Run runs the tests as subtests of t. They cover Build, the table and bad configurations. If the
// method seals files, they also cover round trips, another key, a missing key, every damage by one
// bit or one truncation, and many files at once. For a [driver.Closer], they cover a file after it
// was closed.
//
// For a method for whole files, they cover Build, the table, bad configurations, File, another key,
// files in other formats, round trips and every damage.
func (h Method) Run(t *testing.T) {
	if lacks := h.lacks(); lacks != "" {
		t.Fatalf("the harness lacks %s", lacks)
	}
	if !t.Run("build", func(t *testing.T) { Build(t, h.Block, h.Attrs) }) {
		return
	}
	if h.Block.OwnFormat != nil {
		h.runFiles(t)
		return
	}
	t.Run("table", func(t *testing.T) {
		checkTable(t, h.Block.Table)
		checkMarks(t, h.Block.Table, h.Attrs, h.Secrets)
		if _, has := h.Block.Attr("then"); has {
			t.Error("then is for methods for whole files, see OwnFormat")
		}
	})
	t.Run("bad configuration", func(t *testing.T) {
		for i, attrs := range h.Bad {
			_, err := build(h.Block, attrs)
			if err == nil {
				t.Errorf("configuration %d is accepted", i)
			}
			noSecret(t, err, probe.Spellings(h.Secrets))
		}
	})
	method := Build(t, h.Block, h.Attrs)
	encrypter, ok := method.(driver.Encrypter)
	if !ok {
		t.Skip("it does not seal")
	}
	t.Run("round trip", func(t *testing.T) { h.roundTrip(t, encrypter) })
	sealed := h.seal(t, encrypter, 0)
	t.Run("another key", func(t *testing.T) {
		other, keys := method, h.OtherKeys
		if !h.refers() {
			other, keys = Build(t, h.Block, h.Other), h.Keys
		}
		opened, err := h.open(t, other, keys, sealed)
		if opened != nil || !errors.Is(err, encryption.ErrNoKey) {
			t.Errorf("got %q, %v", opened, err)
		}
	})
	t.Run("no key", func(t *testing.T) {
		if !h.refers() {
			t.Skip("its key is its own")
		}
		failure := errors.New("the key service is away")
		none := func(context.Context, string) ([]byte, error) { return nil, failure }
		opened, err := h.open(t, method, none, sealed)
		if opened != nil || !errors.Is(err, failure) || errors.Is(err, encryption.ErrNoKey) {
			t.Errorf("got %q, %v", opened, err)
		}
	})
	t.Run("damage", func(t *testing.T) {
		probe.Every(t, sealed, func(file []byte) (string, error) {
			opened, err := h.open(t, method, h.Keys, file)
			return string(opened), err
		})
	})
	t.Run("at once", func(t *testing.T) { h.atOnce(t, method, encrypter) })
	t.Run("closed", func(t *testing.T) {
		closeTwice(t, method)
		opened, err := h.open(t, method, h.Keys, sealed)
		if err != nil || string(opened) != samplePlain {
			t.Errorf("after Close, it opens to %q: %v", opened, err)
		}
	})
}

// lacks names the fields that this kind of method requires but the harness does not have.
func (h Method) lacks() string {
	switch refers := h.refers(); {
	case h.Block.OwnFormat != nil && (h.Other == nil || len(h.File) == 0 || len(h.Plain) == 0):
		return "Other, File or Plain, for a method for whole files"
	case h.Block.OwnFormat == nil && refers && (h.Keys == nil || h.OtherKeys == nil):
		return "Keys or OtherKeys, for a method that refers to key providers"
	case h.Block.OwnFormat == nil && !refers && h.Other == nil:
		return "Other, for a method whose key is its own"
	}
	return ""
}

func (h Method) refers() bool {
	return slices.ContainsFunc(h.Block.Attrs, func(a attr.Attr) bool { return a.Form == attr.KeyProvider })
}

const samplePlain = `{"version":4,"outputs":{"secret":{"value":"canary","type":"string"}}}`

// roundTrip seals with two instances of the method, with and without spare capacity behind the
// plaintext, and then opens all files.
func (h Method) roundTrip(t *testing.T, encrypter driver.Encrypter) {
	second := Build(t, h.Block, h.Attrs)
	var files [][]byte
	for _, e := range []driver.Encrypter{encrypter, encrypter, second.(driver.Encrypter)} {
		for _, room := range []int{0, 1, 1000} {
			sealed := h.seal(t, e, room)
			if slices.ContainsFunc(files, func(other []byte) bool { return bytes.Equal(other, sealed) }) {
				t.Error("sealing twice must not give the same bytes")
			}
			if bytes.Contains(sealed, []byte("canary")) {
				t.Error("the plaintext shows")
			}
			files = append(files, sealed)
		}
	}
	for _, file := range files {
		opened, err := h.open(t, second, h.Keys, file)
		if err != nil || string(opened) != samplePlain {
			t.Errorf("got %q, %v", opened, err)
		}
	}
}

// seal seals the sample plaintext, with room bytes of spare capacity behind it.
func (h Method) seal(t *testing.T, encrypter driver.Encrypter, room int) []byte {
	t.Helper()
	plain := append(make([]byte, 0, len(samplePlain)+room), samplePlain...)
	sealed, err := within(t, patience, plain, func() ([]byte, error) { return encrypter.Encrypt(t.Context(), h.Keys, plain) })
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

// open calls Decrypt, and checks everything that must hold for each call.
func (h Method) open(t *testing.T, method driver.Method, keys driver.Keys, sealed []byte) ([]byte, error) {
	t.Helper()
	var secrets []string
	opened, err := within(t, patience, sealed, func() ([]byte, error) {
		return method.Decrypt(t.Context(), func(ctx context.Context, address string) ([]byte, error) {
			key, err := keys(ctx, address)
			secrets = append(secrets, probe.SpellingsOf(key)...)
			return key, err
		}, bytes.Clone(sealed))
	})
	if err != nil && opened != nil {
		t.Errorf("plaintext comes with an error: %v", err)
	}
	noSecret(t, err, secrets)
	return opened, err
}

// build decodes and builds an entry of the block, as a configuration would.
func build[T any](block driver.Block[T], attrs map[string]cty.Value) (T, error) {
	values, err := entries.NewEntry("test."+block.Name+".x", block.Table, attrs).Decode(block.Table, nil)
	if err != nil {
		var none T
		return none, err
	}
	if block.Build == nil {
		var none T
		return none, errors.New("the Block has no Build")
	}
	return block.Build(values)
}

// Build makes a key provider or a method from its attributes, without an environment. An error
// fails the test.
func Build[T any](tb testing.TB, block driver.Block[T], attrs map[string]cty.Value) T {
	tb.Helper()
	built, err := build(block, attrs)
	if err != nil {
		tb.Fatal(err)
	}
	if any(built) == nil {
		tb.Fatal("Build returns nothing, and no error")
	}
	return built
}

// checkTable checks the parts of a table from which documentation and schemas are made.
func checkTable(t *testing.T, table attr.Table) {
	t.Helper()
	if table.Name == "" || table.Doc == "" {
		t.Error("the kind has no name or no documentation")
	}
	all := slices.Concat(table.Attrs, entries.KeyProviderAttrs(), entries.FileMethodAttrs())
	if err := entries.CheckTable(attr.Table{Attrs: all}); err != nil {
		t.Errorf("%s: %v", table.Name, err)
	}
	for _, name := range []string{"name", "provider"} {
		if _, has := table.Attr(name); has {
			t.Errorf("%q is reserved", name)
		}
	}
	checkAttrs(t, all)
}

func checkAttrs(t *testing.T, attrs []attr.Attr) {
	t.Helper()
	for _, a := range attrs {
		if a.Name == "" || a.Doc == "" || !strings.HasSuffix(a.Doc, ".") {
			t.Errorf("%q has no name or no documentation in sentences", a.Name)
		}
		if a.Name == "passphrase" && a.Form != attr.Passphrase {
			t.Errorf("%q is not of the form Passphrase, so files would be sealed with what is none, such as the name of a variable", a.Name)
		}
		checkAttrs(t, a.Attrs)
	}
}

// checkMarks checks that every attribute with a secret value is marked as secret, so that no plan
// shows the value.
func checkMarks(t *testing.T, table attr.Table, attrs map[string]cty.Value, secrets []string) {
	t.Helper()
	for name, v := range attrs {
		a, _ := table.Attr(name)
		holds := func(secret string) bool { return strings.Contains(v.AsString(), secret) }
		if !v.IsNull() && v.IsKnown() && v.Type() == cty.String && !a.Secrecy.IsHidden() && slices.ContainsFunc(secrets, holds) {
			t.Errorf("%q holds a secret, and is neither Secret nor LocalSecret", name)
		}
	}
}

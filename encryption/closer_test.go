package encryption_test

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
)

// session is a key provider that notes when it is closed.
type session struct {
	ticket

	closed func()
}

func (s session) Close() { s.closed() }

// notary is a method that does.
type notary struct {
	driver.Method

	closed func()
}

func (n notary) Encrypt(ctx context.Context, keys driver.Keys, plain []byte) ([]byte, error) {
	return n.Method.(driver.Encrypter).Encrypt(ctx, keys, plain)
}

func (n notary) Close() { n.closed() }

// TestClosers: Close closes every key provider and every method that was built, and
// builds none for that.
//
// Promise: Long lives
func TestClosers(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var built, closed []string
	note := func(list *[]string, what string) {
		mu.Lock()
		defer mu.Unlock()
		*list = append(*list, what)
	}
	registry := ownRegistry()
	registry.KeyProviders = append(registry.KeyProviders, driver.Block[driver.KeyProvider]{
		Table: attr.Table{Name: "session"},
		Build: func(v attr.Values) (driver.KeyProvider, error) {
			note(&built, v.Address())
			return session{closed: func() { note(&closed, v.Address()) }}, nil
		},
	})
	aes := registry.Methods[0]
	aes.Name = "notary"
	build := aes.Build
	aes.Build = func(v attr.Values) (driver.Method, error) {
		note(&built, v.Address())
		m, err := build(v)
		return notary{m, func() { note(&closed, v.Address()) }}, err
	}
	registry.Methods = append(registry.Methods, aes)
	enc := newEncryption(t, registry, `
		key_provider "session" "used" {}
		key_provider "session" "unused" {}
		method "notary" "used" { keys = key_provider.session.used }
		method "notary" "unused" { keys = key_provider.session.unused }
		state { method = method.notary.used }`)
	enc.Close()
	if len(built)+len(closed) > 0 {
		t.Errorf("nothing was used, %q was built and %q closed", built, closed)
	}
	file, err := enc.State().Encrypt(t.Context(), []byte(state))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		closed = nil
		if opened, err := enc.State().Decrypt(t.Context(), bytes.Clone(file)); err != nil || string(opened.Data) != state {
			t.Fatalf("got %+v, %v", opened, err)
		}
		want := slices.Sorted(slices.Values(built))
		enc.Close()
		if slices.Sort(closed); !slices.Equal(closed, want) {
			t.Errorf("%q was closed, want %q", closed, want)
		}
	}
	if !slices.Contains(built, "key_provider.session.used") || slices.Contains(built, "key_provider.session.unused") {
		t.Errorf("%q was built", built)
	}
}

// Package xor combines the keys of two key providers, so that both are needed to open a file.
//
// It has the same options and the same result as the key provider of the same name in OpenTofu's
// source: opentofu/internal/encryption/keyprovider/xor.
package xor

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
)

// Block returns the xor key provider.
func Block() driver.Block[driver.KeyProvider] {
	return driver.Block[driver.KeyProvider]{Build: build, Table: attr.Table{
		Name:    "xor",
		Example: []string{`a = "key_provider.pbkdf2.main"`, `b = "key_provider.static.main"`},
		Doc: "Combines the keys of two key providers, byte by byte, with exclusive or. Both are needed to open a file. " +
			"It stores nothing in the file itself; the two key providers do.",
		Attrs: []attr.Attr{
			{Name: "a", Type: cty.String, Required: true, Form: attr.KeyProvider, Doc: "The address of the first key " +
				"provider, such as `key_provider.pbkdf2.main`."},
			{Name: "b", Type: cty.String, Required: true, Form: attr.KeyProvider, Doc: "The address of the second key " +
				"provider. Its key must be as long as that of the first."},
		},
	}}
}

type provider struct{ a, b string }

var _ driver.KeyMaker = (*provider)(nil)

func build(v attr.Values) (driver.KeyProvider, error) {
	p := &provider{a: v.String("a"), b: v.String("b")}
	if p.a == p.b {
		return nil, v.Errorf("b", "a and b are the same key provider, so the key would be all zeros; set one of them to another "+
			"key provider")
	}
	return p, nil
}

// Key combines the keys of a file. It ignores metadata that the file stores under the name of this
// key provider.
func (p *provider) Key(ctx context.Context, keys driver.Keys, _ json.RawMessage) ([]byte, error) {
	a, err := keys(ctx, p.a)
	if err != nil {
		return nil, err
	}
	b, err := keys(ctx, p.b)
	if err != nil {
		return nil, err
	}
	switch {
	case len(a) != len(b):
		return nil, fmt.Errorf("the key of %s has %d bytes, but the key of %s has %d; the two keys must have the same "+
			"length", p.a, len(a), p.b, len(b))
	case len(a) == 0:
		return nil, errors.New("the two keys are empty")
	case subtle.ConstantTimeCompare(a, b) == 1:
		return nil, errors.New("the two keys are the same, so the key would be all zeros; change one of the keys")
	}
	subtle.XORBytes(a, a, b)
	return a, nil
}

// NewKey combines the keys for a new file.
func (p *provider) NewKey(ctx context.Context, keys driver.Keys) ([]byte, json.RawMessage, error) {
	key, err := p.Key(ctx, keys, nil)
	return key, nil, err
}

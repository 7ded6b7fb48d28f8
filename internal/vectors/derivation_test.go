package vectors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/builtin"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/memo"
)

// parameters are what PBKDF2 makes a key of, beside the passphrase. They are
// read as the key provider reads them.
type parameters struct {
	Salt         []byte `json:"salt"`
	Iterations   int64  `json:"iterations"`
	HashFunction string `json:"hash_function"`
	KeyLength    int64  `json:"key_length"`
}

func (p parameters) id() string {
	return fmt.Sprintf("%x %d %s %d", p.Salt, p.Iterations, p.HashFunction, p.KeyLength)
}

// patient returns the registry with a pbkdf2 that remembers, across the tests,
// what it has derived: many vectors share a key, and the race detector makes
// each take seconds.
func patient() encryption.Registry {
	return withPBKDF2(func(built encryption.KeyProvider, v config.Values) encryption.KeyProvider {
		return &remembering{KeyProvider: built, secret: secretOf(v), chain: v.String("chain")}
	})
}

// quickly returns the registry with a pbkdf2 that can be asked a thousand
// times about one damaged file. It derives the keys of the undamaged one. Any
// change of the salt, the number of iterations, the hash or the length gives a
// key that has nothing to do with those, or a part of one; that of a single
// iteration is no less wrong than that of 600000, so this is what it derives.
// The same goes for what is built on such a key with chain.
//
// Nothing else differs: what is stored is read, checked and refused by the real
// key provider, and damage that changes none of the parameters gets the real
// key.
func quickly(file []byte) encryption.Registry {
	var envelope struct {
		Meta map[string][]byte `json:"meta"`
	}
	if json.Unmarshal(file, &envelope) != nil || envelope.Meta == nil {
		return patient() // another format; damage does not get past it
	}
	original, wrong := map[string]bool{}, &sync.Map{}
	for _, doc := range envelope.Meta {
		var p parameters
		if json.Unmarshal(doc, &p) == nil {
			original[p.id()] = true
		}
	}
	return withPBKDF2(func(built encryption.KeyProvider, v config.Values) encryption.KeyProvider {
		return &remembering{KeyProvider: built, secret: secretOf(v), chain: v.String("chain"), original: original, wrong: wrong}
	})
}

func withPBKDF2(wrap func(encryption.KeyProvider, config.Values) encryption.KeyProvider) encryption.Registry {
	registry := builtin.Registry()
	i := slices.IndexFunc(registry.KeyProviders, func(b encryption.Block[encryption.KeyProvider]) bool { return b.Name == "pbkdf2" })
	original := registry.KeyProviders[i].Build
	registry.KeyProviders[i].Build = func(v config.Values) (encryption.KeyProvider, error) {
		built, err := original(v)
		if err != nil {
			return nil, err
		}
		return wrap(built, v), nil
	}
	return registry
}

// secretOf is what decides about a key beside what is stored.
func secretOf(v config.Values) string {
	limit, err := v.Int("max_iterations", 1, 1<<31-1)
	return fmt.Sprintf("%q %d %v", v.String("passphrase"), limit, err)
}

// derivations are the keys that the tests of this package have asked for.
var derivations memo.Memo[string, []byte]

type remembering struct {
	encryption.KeyProvider
	secret   string
	chain    string
	original map[string]bool // :: parameters of the undamaged file; nil when there is no other
	wrong    *sync.Map       // :: key that is not of the undamaged file → true; of all key providers of the file
}

func (r *remembering) Recognizes(stored json.RawMessage) bool {
	return r.KeyProvider.(encryption.Recognizer).Recognizes(stored)
}

func (r *remembering) Key(ctx context.Context, keys encryption.Keys, stored json.RawMessage) ([]byte, error) {
	var p parameters
	if !r.Recognizes(stored) || json.Unmarshal(stored, &p) != nil {
		return r.KeyProvider.Key(ctx, keys, stored) // which refuses it
	}
	id, damaged := r.secret+p.id(), r.original != nil && !r.original[p.id()]
	if r.chain != "" {
		upstream, err := keys(ctx, r.chain)
		if err != nil {
			return nil, err
		}
		id += fmt.Sprintf(" %x", upstream)
		if r.wrong != nil {
			_, wrong := r.wrong.Load(string(upstream))
			damaged = damaged || wrong
		}
	}
	if damaged {
		p.Iterations = 1
		cheap, err := json.Marshal(p)
		if err != nil {
			return nil, err
		}
		key, err := r.KeyProvider.Key(ctx, keys, cheap)
		r.wrong.Store(string(key), true)
		return key, err
	}
	key, err := derivations.Do(ctx, id, func(ctx context.Context) ([]byte, error) { return r.KeyProvider.Key(ctx, keys, stored) })
	return slices.Clone(key), err
}

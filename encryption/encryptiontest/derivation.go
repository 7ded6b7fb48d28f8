package encryptiontest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/memo"
)

// Derivations make a pbkdf2 key provider fast enough for tests. They remember
// what was derived: many files share a key, and the race detector makes each take
// seconds. The zero value is ready to use.
type Derivations struct {
	keys memo.Memo[string, []byte]
}

// Remembered returns a pbkdf2 that remembers.
func (d *Derivations) Remembered(pbkdf2 encryption.Block[encryption.KeyProvider]) encryption.Block[encryption.KeyProvider] {
	return wrapped(pbkdf2, func(built encryption.KeyProvider, v attr.Values) encryption.KeyProvider {
		return &memorizer{KeyProvider: built, derivations: d, secret: secretOf(v), chain: v.String("chain")}
	})
}

// Quick returns a pbkdf2 that can be asked a thousand times about one damaged
// file. It derives the keys of the undamaged one. Any change of the salt, the
// number of iterations, the hash or the length gives a key that has nothing to do
// with those, or a part of one; that of a single iteration is no less wrong than
// that of 600000, so this is what it derives. The same goes for what is built on
// such a key with chain.
//
// Nothing else differs: what is stored is read, checked and refused by the real
// key provider, and damage that changes none of the parameters gets the real
// key. A chain on a key of another kind is the same as none: that key is whole,
// or the same derivation gives another one.
func (d *Derivations) Quick(pbkdf2 encryption.Block[encryption.KeyProvider], file []byte) encryption.Block[encryption.KeyProvider] {
	var envelope struct {
		Meta map[string][]byte `json:"meta"`
	}
	if json.Unmarshal(file, &envelope) != nil || envelope.Meta == nil {
		return d.Remembered(pbkdf2) // another format; damage does not get past it
	}
	original, wrong := map[string]bool{}, &sync.Map{}
	for _, doc := range envelope.Meta {
		var p parameters
		if json.Unmarshal(doc, &p) == nil {
			original[p.id()] = true
		}
	}
	return wrapped(pbkdf2, func(built encryption.KeyProvider, v attr.Values) encryption.KeyProvider {
		return &memorizer{KeyProvider: built, derivations: d, secret: secretOf(v), chain: v.String("chain"), original: original, wrong: wrong}
	})
}

func wrapped(
	block encryption.Block[encryption.KeyProvider], wrap func(encryption.KeyProvider, attr.Values) encryption.KeyProvider,
) encryption.Block[encryption.KeyProvider] {
	original := block.Build
	block.Build = func(v attr.Values) (encryption.KeyProvider, error) {
		built, err := original(v)
		if err != nil {
			return nil, err
		}
		return wrap(built, v), nil
	}
	return block
}

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

// secretOf is what decides about a key beside what is stored.
func secretOf(v attr.Values) string {
	limit, err := v.Int("max_iterations", 1, 1<<31-1)
	return fmt.Sprintf("%q %d %v", v.String("passphrase"), limit, err)
}

type memorizer struct {
	encryption.KeyProvider
	derivations *Derivations
	secret      string
	chain       string
	original    map[string]bool // :: parameters of the undamaged file; nil when there is no other
	wrong       *sync.Map       // :: key that is not of the undamaged file → true; of all key providers of the file
}

func (r *memorizer) Recognizes(stored json.RawMessage) bool {
	return r.KeyProvider.(encryption.Recognizer).Recognizes(stored)
}

func (r *memorizer) Key(ctx context.Context, keys encryption.Keys, stored json.RawMessage) ([]byte, error) {
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
	key, err := r.derivations.keys.Do(ctx, id, func(ctx context.Context) ([]byte, error) { return r.KeyProvider.Key(ctx, keys, stored) })
	return slices.Clone(key), err
}

package lighttest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/memo"
)

// Derivations make a pbkdf2 key provider fast enough for tests. They remember
// what was derived: many files share a key, and the race detector makes each take
// seconds. The zero value is ready to use.
type Derivations struct {
	keys memo.Memo[string, []byte]
}

// Quick returns a pbkdf2 that remembers, and that can be asked a thousand times
// about one damaged file. It derives the keys of the undamaged one, which is nil
// if no file is damaged. Any change of the salt, the number of iterations, the
// hash or the length gives a key that has nothing to do with those, or a part of
// one; that of a single iteration is no less wrong than that of 600000, so this is
// what it derives. The same goes for what is built on such a key with chain.
//
// Nothing else differs: what is stored is read, checked and refused by the real
// key provider, and damage that changes none of the parameters gets the real
// key. A chain on a key of another kind is the same as none: that key is whole,
// or the same derivation gives another one.
func (d *Derivations) Quick(pbkdf2 driver.Block[driver.KeyProvider], file []byte) driver.Block[driver.KeyProvider] {
	var envelope struct {
		Meta map[string][]byte `json:"meta"`
	}
	var original map[string]bool
	if json.Unmarshal(file, &envelope) == nil && envelope.Meta != nil { // damage does not get past another format
		original = map[string]bool{}
	}
	for _, doc := range envelope.Meta {
		var p parameters
		if json.Unmarshal(doc, &p) == nil {
			original[p.id()] = true
		}
	}
	build, wrong := pbkdf2.Build, &sync.Map{}
	pbkdf2.Build = func(v attr.Values) (driver.KeyProvider, error) {
		built, err := build(v)
		if err != nil {
			return nil, err
		}
		secret := fmt.Sprintf("%q %d", v.String("passphrase"), v.Int("max_iterations"))
		return &memorizer{KeyProvider: built, derivations: d, secret: secret, chain: v.String("chain"), original: original, wrong: wrong}, nil
	}
	return pbkdf2
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

type memorizer struct {
	driver.KeyProvider
	derivations *Derivations
	secret      string // what decides about a key beside what is stored
	chain       string
	original    map[string]bool // :: parameters of the undamaged file; nil when there is no other
	wrong       *sync.Map       // :: key that is not of the undamaged file → true; of all key providers of the file
}

func (r *memorizer) Recognizes(stored json.RawMessage) bool {
	recognizer, ok := r.KeyProvider.(driver.Recognizer)
	return ok && recognizer.Recognizes(stored)
}

func (r *memorizer) Key(ctx context.Context, keys driver.Keys, stored json.RawMessage) ([]byte, error) {
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
		_, wrong := r.wrong.Load(string(upstream))
		damaged = damaged || wrong
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

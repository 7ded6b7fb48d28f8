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

// Derivations makes a pbkdf2 key provider fast enough for tests. It remembers derived keys, because
// many files share a key, and each derivation takes seconds under the race detector. The zero value
// is ready to use.
type Derivations struct {
	keys memo.Memo[string, []byte]
}

// Quick returns a pbkdf2 that remembers keys, and that can be asked a thousand times about damaged
// copies of one file. File is the undamaged file, or nil if no file is damaged. Quick derives the
// real keys only for the parameters in the undamaged file. If the salt, the number of iterations,
// the hash or the length changes, the key becomes unrelated to the real one, or a part of it. The
// key after one iteration is just as wrong as the key after 600,000, so Quick runs only one. It
// does the same for keys that are built on such a key with chain.
//
// Nothing else differs. The real key provider reads, checks and refuses the metadata, and damage
// that changes none of the parameters gets the real key. A chain on another kind of key needs no
// special case: either that key is intact, or the same derivation gives another key.
func (d *Derivations) Quick(pbkdf2 driver.Block[driver.KeyProvider], file []byte) driver.Block[driver.KeyProvider] {
	var envelope struct {
		Meta map[string][]byte `json:"meta"`
	}
	var original map[string]bool
	if json.Unmarshal(file, &envelope) == nil && envelope.Meta != nil { // in other formats, damage does not reach the key provider
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

// parameters holds the input of PBKDF2 except the passphrase. The fields are read in the same way
// as by the key provider.
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
	secret      string // the settings that a key depends on
	chain       string
	original    map[string]bool // parameters in the undamaged file; nil if no file is damaged
	wrong       *sync.Map       // wrong keys of damaged files, shared by all key providers of the file
}

func (r *memorizer) Recognizes(stored json.RawMessage) bool {
	recognizer, ok := r.KeyProvider.(driver.Recognizer)
	return ok && recognizer.Recognizes(stored)
}

func (r *memorizer) Key(ctx context.Context, keys driver.Keys, stored json.RawMessage) ([]byte, error) {
	var p parameters
	if !r.Recognizes(stored) || json.Unmarshal(stored, &p) != nil {
		return r.KeyProvider.Key(ctx, keys, stored) // the key provider refuses the document
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

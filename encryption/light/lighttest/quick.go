package lighttest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/keyprovider/pbkdf2"
)

// quickSalt is the beginning of the salt in every file that a test seals. Such files take one
// iteration, regardless of their metadata. Other files take as many iterations as their metadata
// says.
const quickSalt = "sealed by a test"

const saltLength = 32 // bytes; the default of pbkdf2

// quick is a pbkdf2 key provider that does little work.
type quick struct{ whole }

// whole lists everything that pbkdf2 can do.
type whole interface {
	driver.KeyProvider
	driver.Salter
	driver.Deriver
	driver.Recognizer
	driver.Closer
}

func quickBlock() driver.Block[driver.KeyProvider] {
	block := pbkdf2.Block()
	build := block.Build
	block.Build = func(v attr.Values) (driver.KeyProvider, error) {
		built, err := build(v)
		if err != nil {
			return nil, err
		}
		all, ok := built.(whole)
		if !ok {
			return nil, errors.New("pbkdf2 has lost an ability")
		}
		return quick{all}, nil
	}
	return block
}

func (q quick) NewKey(ctx context.Context, keys driver.Keys) ([]byte, json.RawMessage, error) {
	stored := q.NewDocument()
	key, err := q.Key(ctx, keys, stored)
	return key, stored, err
}

func (q quick) NewDocument() json.RawMessage {
	var members map[string]any
	stored := q.whole.NewDocument()
	if err := json.Unmarshal(stored, &members); err != nil {
		return stored
	}
	salt := make([]byte, saltLength)
	_, _ = rand.Read(salt[copy(salt, quickSalt):]) // never fails
	members["salt"] = salt
	stored, _ = json.Marshal(members) // cannot fail, because the members come from JSON
	return stored
}

func (q quick) Key(ctx context.Context, keys driver.Keys, stored json.RawMessage) ([]byte, error) {
	var metadata struct {
		Salt         []byte `json:"salt"`
		Iterations   int64  `json:"iterations"`
		HashFunction string `json:"hash_function"`
		KeyLength    int64  `json:"key_length"`
	}
	if err := json.Unmarshal(stored, &metadata); err == nil && bytes.HasPrefix(metadata.Salt, []byte(quickSalt)) {
		metadata.Iterations = 1
		if stored, err = json.Marshal(metadata); err != nil {
			return nil, err
		}
	}
	return q.whole.Key(ctx, keys, stored)
}

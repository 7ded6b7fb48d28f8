package lighttest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/keyprovider/pbkdf2"
)

// quickSalt begins the salts of files that tests seal. Theirs is one iteration,
// whatever their metadata says; the files of others take as many as they say.
const quickSalt = "sealed by a test"

// quick is pbkdf2 without the work.
type quick struct {
	encryption.KeyProvider
}

func quickBlock() encryption.Block[encryption.KeyProvider] {
	block := pbkdf2.Block()
	build := block.Build
	block.Build = func(v attr.Values) (encryption.KeyProvider, error) {
		built, err := build(v)
		if err != nil {
			return nil, err
		}
		return quick{built}, nil
	}
	return block
}

func (q quick) NewKey(ctx context.Context, keys encryption.Keys) ([]byte, json.RawMessage, error) {
	stored, err := q.Stored([]byte(quickSalt+rand.Text()), nil)
	if err != nil {
		return nil, nil, err
	}
	key, err := q.Key(ctx, keys, stored)
	return key, stored, err
}

func (q quick) Key(ctx context.Context, keys encryption.Keys, stored json.RawMessage) ([]byte, error) {
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
	return q.KeyProvider.Key(ctx, keys, stored)
}

func (q quick) Stored(salt []byte, wrapped json.RawMessage) (json.RawMessage, error) {
	return q.KeyProvider.(encryption.Deriver).Stored(salt, wrapped)
}

func (q quick) Recognizes(stored json.RawMessage) bool {
	return q.KeyProvider.(encryption.Recognizer).Recognizes(stored)
}

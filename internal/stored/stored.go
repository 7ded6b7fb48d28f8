// Package stored reads what key providers have put into files.
package stored

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
)

// AgeKey is the member of external_data that holds a key which is sealed with age, in
// place of what a program stores there.
const AgeKey = "statecrypt_age_key"

// Decode reads the metadata that a file stores of a key provider of this kind.
// The error wraps [encryption.ErrNoKey] when the file stores none,
// and [encryption.ErrDamaged] when it cannot be read.
func Decode(document json.RawMessage, kind string, into any) error {
	if document == nil {
		return fmt.Errorf("%w: the file stores nothing of this key provider; "+
			"if it was encrypted under another name, set encrypted_metadata_alias", encryption.ErrNoKey)
	}
	if json.Unmarshal(document, into) != nil {
		return fmt.Errorf("%w: the metadata in it is not that of %s", encryption.ErrDamaged, kind)
	}
	return nil
}

// Wrapping is the [encryption.Recognizer] and the [encryption.Deriver] of a key
// provider that only unwraps keys, which embeds it.
type Wrapping[Metadata any] struct {
	Kind  string // in errors, such as "an aws_kms key provider"
	Parse func(json.RawMessage) (Metadata, error)
}

// Recognizes reports whether document is metadata of this kind.
func (w Wrapping[Metadata]) Recognizes(document json.RawMessage) bool {
	_, err := w.Parse(document)
	return err == nil
}

// Stored returns wrapped, which is opened to the same key each time.
func (w Wrapping[Metadata]) Stored(salt []byte, wrapped json.RawMessage) (json.RawMessage, error) {
	switch {
	case salt != nil:
		return nil, fmt.Errorf("%s needs no salt; tell keys apart by info", w.Kind)
	case wrapped == nil:
		return nil, fmt.Errorf("wrapped_key is required, so that the same key comes back each time: the metadata that %s stores", w.Kind)
	}
	if _, err := w.Parse(wrapped); err != nil {
		return nil, errors.New("wrapped_key must be the metadata that " + w.Kind + " stores")
	}
	return wrapped, nil
}

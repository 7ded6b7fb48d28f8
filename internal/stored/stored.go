// Package stored reads what key providers have put into files.
package stored

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
)

// Decode reads the metadata that a file stores of a key provider of this kind.
// The error wraps [encryption.ErrNoKey] when the file stores none,
// and [encryption.ErrDamaged] when it cannot be read.
func Decode(document json.RawMessage, kind string, into any) error {
	if document == nil {
		return fmt.Errorf("%w: the file stores nothing of this key provider; "+
			"if it was sealed under another name, set encrypted_metadata_alias", encryption.ErrNoKey)
	}
	if json.Unmarshal(document, into) != nil {
		return fmt.Errorf("%w: the metadata in it is not that of %s", encryption.ErrDamaged, kind)
	}
	return nil
}

// Wrapped is [encryption.Deriver] for key providers that only unwrap keys. What
// is wrapped is metadata of that kind, as parse reads it.
func Wrapped[T any](salt []byte, wrapped json.RawMessage, kind string, parse func(json.RawMessage) (T, error)) (json.RawMessage, error) {
	_, err := parse(wrapped)
	switch {
	case salt != nil:
		return nil, fmt.Errorf("%s needs no salt; tell keys apart by info", kind)
	case wrapped == nil:
		return nil, fmt.Errorf("wrapped_key is required, so that the same key comes back each time: the metadata that %s stores", kind)
	case err != nil:
		return nil, errors.New("wrapped_key must be the metadata that " + kind + " stores")
	}
	return wrapped, nil
}

package driver

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/mark"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
)

// DecodeStored decodes the JSON document that [KeyProvider.Key] receives. Errors name the key
// provider by kind, such as "an aws_kms key provider". The error wraps [ErrNoKey] if stored is nil,
// and [ErrDamaged] if the document cannot be decoded. As in encoding/json, null leaves the target
// unchanged, so the caller must check that required members are set.
func DecodeStored(stored json.RawMessage, kind string, into any) error {
	if stored == nil {
		return fmt.Errorf("%w: %w", ErrNoKey, mark.ErrNothingStored)
	}
	if json.Unmarshal(stored, into) != nil {
		return fault.With(fmt.Errorf("%w: its metadata does not come from %s", ErrDamaged, kind), "restore an intact copy")
	}
	return nil
}

// Wrapping implements [Recognizer] and [Deriver] for key providers that unwrap stored keys. Such a
// key provider embeds it.
type Wrapping[Metadata any] struct {
	Kind  string // the name in errors, such as "an aws_kms key provider"
	Parse func(stored json.RawMessage) (Metadata, error)
}

// Recognizes reports whether stored is metadata of this kind.
func (w Wrapping[Metadata]) Recognizes(stored json.RawMessage) bool {
	return w.check(stored) == nil
}

func (w Wrapping[Metadata]) check(stored json.RawMessage) error {
	if w.Parse == nil {
		return errors.New("a Wrapping without Parse recognizes nothing")
	}
	_, err := w.Parse(stored)
	return err
}

// Stored returns wrapped, from which Key unwraps the same key each time. It returns an error if
// there is a salt, or if wrapped is not metadata of this kind.
func (w Wrapping[Metadata]) Stored(salt []byte, wrapped json.RawMessage) (json.RawMessage, error) {
	switch {
	case salt != nil:
		return nil, fmt.Errorf("%s does not take a salt; to tell keys apart, set the argument info", w.Kind)
	case wrapped == nil:
		return nil, fmt.Errorf("wrapped_key is missing, so each run would get another key; set it to the metadata that %s stores", w.Kind)
	}
	if w.check(wrapped) != nil {
		return nil, errors.New("wrapped_key is not the metadata that " + w.Kind + " stores")
	}
	return wrapped, nil
}

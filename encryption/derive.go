package encryption

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
)

// Derivation describes a key to derive. Equal derivations give equal keys.
type Derivation struct {
	Info    string          // the purpose of the key; required
	Length  int             // length of the key in bytes, from 16 to 64
	Salt    []byte          // at least 16 bytes if the key provider needs a salt, otherwise nil
	Wrapped json.RawMessage // stored metadata if the key provider needs it, otherwise nil
}

// derivationLabel separates derived keys from other uses of the same key. It contains a version
// because it can never change.
const derivationLabel = "statecrypt/derived-key/v1"

// DeriveKey derives a key of d.Length bytes from the key of a key provider that is marked
// exportable. It uses HKDF-SHA-256 (RFC 5869) without a salt. The info consists of
// "statecrypt/derived-key/v1", a zero byte, and d.Info. DeriveKey never returns the key provider's
// own key. If the key provider fails, the error names it.
func (e *Encryption) DeriveKey(ctx context.Context, address string, d Derivation) ([]byte, error) {
	switch {
	case !e.made():
		return nil, errNotMade()
	case ctx == nil:
		return nil, errNilContext
	case d.Info == "":
		return nil, errors.New("the argument info is empty; set it to the purpose of the key, for example backup")
	case d.Length < 16 || d.Length > 64:
		return nil, fmt.Errorf("the length is %d bytes, but a derived key has 16 to 64", d.Length)
	}
	provider, err := e.keyProvider(address)
	if err != nil {
		return nil, keyError(address, err)
	}
	if !provider.exportable {
		return nil, &providerError{address, fault.With(
			errors.New("the key provider does not allow derived keys"), "set exportable = true in the block of the "+
				"key provider")}
	}
	deriver, ok := provider.KeyProvider.(driver.Deriver)
	if !ok {
		return nil, &providerError{address, fault.With(
			errors.New("this kind of key provider does not support derived keys"), "choose another kind, for example pbkdf2")}
	}
	stored, err := deriver.Stored(d.Salt, d.Wrapped)
	if err != nil {
		return nil, &providerError{address, err}
	}
	keys := fileKeys{encryption: e, meta: map[string][]byte{}}
	if stored != nil {
		keys.meta[provider.metadataKey] = stored
	}
	secret, err := keys.key(ctx, address)
	if stopped := ended(ctx); err != nil && stopped != nil {
		err = &providerError{address, stopped}
	}
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, secret, nil, derivationLabel+"\x00"+d.Info, d.Length)
	if err != nil {
		return nil, fmt.Errorf("deriving the key: %w", err)
	}
	return key, nil
}

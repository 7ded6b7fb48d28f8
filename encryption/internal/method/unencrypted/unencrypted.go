// Package unencrypted is the method for plaintext. It exists so that plaintext
// is read only if the user names it.
package unencrypted

import (
	"context"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// Block returns the unencrypted method.
func Block() encryption.Block[encryption.Method] {
	return encryption.Block[encryption.Method]{
		Table: attr.Table{
			Name: syntax.Unencrypted,
			Doc: "Plaintext. A state that is not encrypted is read only where this is the method or a fallback. " +
				"The address `unencrypted` stands for it without a block.",
		},
		Build: func(attr.Values) (encryption.Method, error) { return method{}, nil },
	}
}

type method struct{}

var _ encryption.Encrypter = method{}

// Decrypt returns data.
func (method) Decrypt(_ context.Context, _ encryption.Keys, data []byte) ([]byte, error) {
	return data, nil
}

// Encrypt returns plain.
func (method) Encrypt(_ context.Context, _ encryption.Keys, plain []byte) ([]byte, error) {
	return plain, nil
}

// Package unencrypted provides the method for plaintext. It exists so that plaintext is read only
// if the user names this method.
package unencrypted

import (
	"context"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
)

// Block returns the unencrypted method.
func Block() driver.Block[driver.Method] {
	return driver.Block[driver.Method]{
		Table: attr.Table{
			Name: syntax.Unencrypted, OtherNames: []string{"plaintext", "none"},
			Doc: "Plaintext. A state that is not encrypted is read only if this is the method or a fallback. " +
				"The address `unencrypted` stands for it without a block.",
		},
		Build: func(attr.Values) (driver.Method, error) { return method{}, nil },
	}
}

type method struct{}

var _ driver.Encrypter = method{}

// Decrypt returns data unchanged.
func (method) Decrypt(_ context.Context, _ driver.Keys, data []byte) ([]byte, error) {
	return data, nil
}

// Encrypt returns plain unchanged.
func (method) Encrypt(_ context.Context, _ driver.Keys, plain []byte) ([]byte, error) {
	return plain, nil
}

// Package external leaves encryption to a program that the user names.
//
// It has the same options and the same protocol as OpenTofu's method of the same name
// (opentofu/internal/encryption/method/external), and runs the same programs.
package external

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/program"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
)

const magic = "OpenTofu-External-Encryption-Method"

// Block returns the external method.
func Block() driver.Block[driver.Method] {
	return driver.Block[driver.Method]{Build: build, Table: attr.Table{
		Name: "external",
		Doc: "Runs programs that encrypt and decrypt, with the protocol of OpenTofu's external method, for at most a minute each. They get the " +
			"environment without the secrets of this provider and of Terraform.",
		Attrs: []attr.Attr{
			{Name: "keys", Type: cty.String, Form: attr.KeyProvider, Doc: "The address of the key provider whose key the " +
				"programs are given, such as `key_provider.pbkdf2.main`. Defaults to none."},
			{Name: "encrypt_command", Type: cty.List(cty.String), Required: true, Form: attr.Command, Doc: "The program " +
				"that encrypts, and its arguments. It is not run when a file is read."},
			{Name: "decrypt_command", Type: cty.List(cty.String), Required: true, Form: attr.Command, Doc: "The program " +
				"that decrypts, and its arguments."},
		},
	}}
}

type method struct {
	keys             string // "" if the programs get no key
	encrypt, decrypt program.Command
}

var _ driver.Encrypter = (*method)(nil)

// input and output are the documents that a program receives and prints, like OpenTofu's InputV1
// and OutputV1.
type input struct {
	Key     []byte `json:"key,omitempty"`
	Payload []byte `json:"payload"`
}

type output struct {
	Payload []byte `json:"payload"`
}

func build(v attr.Values) (driver.Method, error) {
	encrypt, err := program.New(v, "encrypt_command", magic)
	if err != nil {
		return nil, err
	}
	decrypt, err := program.New(v, "decrypt_command", magic)
	return &method{keys: v.String("keys"), encrypt: encrypt, decrypt: decrypt}, err
}

// Decrypt has the program decrypt data. If the program fails or gives a wrong answer, the next
// method is tried, as in OpenTofu, because a program has no other way to say that the key is wrong.
func (m *method) Decrypt(ctx context.Context, keys driver.Keys, data []byte) ([]byte, error) {
	if len(data) == 0 {
		return nil, fmt.Errorf("%w: the encrypted data is empty, so the file is probably truncated", driver.ErrNoKey)
	}
	plain, err := m.run(ctx, keys, m.decrypt, data)
	if errors.Is(err, program.ErrFailed) || errors.Is(err, program.ErrProtocol) {
		return nil, fmt.Errorf("%w: %w", driver.ErrNoKey, err)
	}
	return plain, err
}

// Encrypt has the program encrypt plain.
func (m *method) Encrypt(ctx context.Context, keys driver.Keys, plain []byte) ([]byte, error) {
	return m.run(ctx, keys, m.encrypt, plain)
}

func (m *method) run(ctx context.Context, keys driver.Keys, command program.Command, data []byte) ([]byte, error) {
	in := input{Payload: data}
	if m.keys != "" {
		key, err := keys(ctx, m.keys)
		if err != nil {
			return nil, err
		}
		in.Key = key
	}
	document, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	var out *output
	most := meter.Expanded(int64(len(data))) // the program may have compressed the data
	if err := command.Run(ctx, document, int(min(most, math.MaxInt)), &out, in.Key); err != nil {
		return nil, err
	}
	if out == nil || len(out.Payload) == 0 {
		return nil, fmt.Errorf("%w: it answered without a payload", program.ErrProtocol)
	}
	return out.Payload, nil
}

// Package external gets keys from a program that the user names.
//
// It has the same options, protocol and metadata as OpenTofu's key provider of the same name
// (opentofu/internal/encryption/keyprovider/external), and runs the same programs.
package external

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/mark"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/program"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
)

const (
	magic = "OpenTofu-External-Key-Provider"

	maxKeyLength = 1024    // bytes
	maxMetadata  = 1 << 20 // maximum size of the metadata that a program receives, in bytes
	maxAnswer    = 1 << 20 // bytes
)

// Block returns the external key provider.
func Block() driver.Block[driver.KeyProvider] {
	return driver.Block[driver.KeyProvider]{Build: build, Table: attr.Table{
		Name:    "external",
		Example: []string{`command = ["./get-key.sh"]`},
		Doc: "Runs a program that gives the key, with the protocol of OpenTofu's external key provider, for at most a minute. It gets the " +
			"environment without the secrets of this provider and of Terraform.",
		Attrs: []attr.Attr{
			{Name: "command", Type: cty.List(cty.String), Required: true, Form: attr.Command, Doc: "The program and its " +
				"arguments. The program is looked up in `PATH`. " +
				"Arguments are visible to everybody on the machine: they must not hold secrets."},
		},
	}}
}

type provider struct {
	driver.Wrapping[metadata]

	command program.Command
}

var (
	_ driver.KeyMaker   = (*provider)(nil)
	_ driver.Recognizer = (*provider)(nil)
	_ driver.Deriver    = (*provider)(nil)
)

// metadata is the document that a file stores and that the program receives. Its numbers pass
// through float64, as in OpenTofu.
type metadata struct {
	ExternalData map[string]any `json:"external_data"`
}

// output is the program's answer, with the fields of OpenTofu's OutputV1.
type output struct {
	Keys struct {
		EncryptionKey []byte `json:"encryption_key"`
		DecryptionKey []byte `json:"decryption_key"`
	} `json:"keys"`
	Meta metadata `json:"meta"`
}

func build(v attr.Values) (driver.KeyProvider, error) {
	command, err := program.New(v, "command", magic)
	return &provider{Wrapping: driver.Wrapping[metadata]{Kind: "an external key provider", Parse: parse}, command: command}, err
}

// Key runs the program to get the key of a file. If the program is missing or fails, the error wraps
// ErrNoKey. A timeout error does not wrap ErrNoKey, because the program might have the key.
func (p *provider) Key(ctx context.Context, _ driver.Keys, stored json.RawMessage) ([]byte, error) {
	var m metadata
	if stored != nil {
		if len(stored) > maxMetadata {
			return nil, fmt.Errorf("the metadata in the file has %d bytes, but at most %d are allowed", len(stored), maxMetadata)
		}
		if json.Unmarshal(stored, &m) != nil {
			return nil, errDamaged
		}
	}
	out, err := p.run(ctx, m)
	switch {
	case errors.Is(err, program.ErrFailed):
		return nil, fmt.Errorf("%w: %w", driver.ErrNoKey, err)
	case err != nil:
		return nil, err
	case len(out.Keys.DecryptionKey) == 0 && m.ExternalData == nil:
		return nil, fault.With(fmt.Errorf("%w: the file has no metadata for the program",
			driver.ErrNoKey), "if the key provider had another name when the file was encrypted, set encrypted_metadata_alias to that name")
	case len(out.Keys.DecryptionKey) == 0:
		return nil, fmt.Errorf("%w: the program returned no decryption_key for the metadata in the file", driver.ErrNoKey)
	}
	return checked(out.Keys.DecryptionKey)
}

// NewKey runs the program for the key of a new file.
func (p *provider) NewKey(ctx context.Context, _ driver.Keys) ([]byte, json.RawMessage, error) {
	out, err := p.run(ctx, metadata{})
	if err != nil {
		return nil, nil, err
	}
	if len(out.Keys.EncryptionKey) == 0 {
		return nil, nil, errors.New("the program returned no encryption_key")
	}
	key, err := checked(out.Keys.EncryptionKey)
	if err != nil {
		return nil, nil, err
	}
	stored, err := json.Marshal(out.Meta)
	return key, stored, err
}

// Recognizes reports whether document is metadata of an external program. It returns false for
// metadata of the age key provider, which is found only by its name.
func (p *provider) Recognizes(document json.RawMessage) bool {
	m, err := parse(document)
	_, ofAge := m.ExternalData[mark.AgeKey]
	return err == nil && !ofAge
}

// parse returns the metadata in stored, or an error if it does not have the shape of this kind. The
// content is up to the program.
func parse(stored json.RawMessage) (m metadata, err error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(stored, &members) != nil || len(members) != 1 || members["external_data"] == nil || json.Unmarshal(stored, &m) != nil {
		return m, errDamaged
	}
	return m, nil
}

var errDamaged = fmt.Errorf("%w: its metadata does not come from an external key provider; restore an intact copy", driver.ErrDamaged)

func (p *provider) run(ctx context.Context, m metadata) (output, error) {
	input := []byte("null") // also if the stored metadata is null, as in OpenTofu
	if m.ExternalData != nil {
		var err error
		if input, err = json.Marshal(m); err != nil {
			return output{}, err
		}
	}
	var out *output
	if err := p.command.Run(ctx, input, maxAnswer, &out); err != nil {
		return output{}, err
	}
	if out == nil {
		return output{}, fmt.Errorf("%w: it answered null", program.ErrProtocol)
	}
	return *out, nil
}

func checked(key []byte) ([]byte, error) {
	if len(key) > maxKeyLength {
		return nil, fmt.Errorf("the program returned a key of %d bytes, but at most %d are allowed", len(key), maxKeyLength)
	}
	return key, nil
}

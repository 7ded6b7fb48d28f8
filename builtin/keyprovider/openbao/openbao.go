// Package openbao implements a key provider that gets keys from the transit engine of OpenBao or HashiCorp
// Vault. Both have the same API.
//
// Its options, defaults, environment variables and metadata are compatible with OpenTofu's key provider of
// the same name (opentofu/internal/encryption/keyprovider/openbao). It also supports namespaces and logins.
// The API is documented in https://openbao.org/api-docs/secret/transit/.
package openbao

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
)

const (
	maxCiphertext     = 64 << 10 // in bytes; a wrapped key of 64 bytes takes about 140
	maxAssociatedData = 64 << 10 // in bytes of base64
	maxKeyLength      = 1024     // in bytes
)

const kind = "an openbao key provider" // the name of this kind in error messages

// Block returns the openbao key provider.
func Block() driver.Block[driver.KeyProvider] {
	return driver.Block[driver.KeyProvider]{Table: table(), Build: build}
}

type provider struct {
	driver.Wrapping[metadata]

	server         *server
	transit        string
	keyName        string
	keyLength      int64
	associatedData string // the associated data for new keys, in base64
}

var _ driver.Warner = (*provider)(nil)

// Close closes idle connections to the server. Connections in use are closed after their request.
func (p *provider) Close() {
	if transport := p.server.transport.Load(); transport != nil {
		transport.CloseIdleConnections()
	}
}

// Warning returns a warning if an attacker on the network can read the token and the keys.
func (p *provider) Warning() driver.Warning {
	address, err := url.Parse(p.server.address)
	switch {
	case err != nil:
	case address.Scheme == "https" && p.server.tls.Insecure:
		return driver.Warning(netfail.Unverified("the server", "skip_tls_verify is set", "read the credentials and the keys"))
	case netfail.IsExposed(address, p.server.proxy):
		return driver.Warning(netfail.Unencrypted("The credentials and the keys were", "address begins with http", "read them"))
	}
	return driver.Warning{}
}

// metadata is the document stored in a file. The names are the same as in OpenTofu's provider.go.
type metadata struct {
	Ciphertext     []byte `json:"ciphertext"`                // text of the form "vault:v1:…"
	AssociatedData string `json:"associated_data,omitempty"` // in base64
}

func build(v attr.Values) (driver.KeyProvider, error) {
	return &provider{
		Wrapping: driver.Wrapping[metadata]{Kind: kind, Parse: parse},

		server: newServer(v), transit: strings.Trim(v.String("transit_engine_path"), "/"), keyName: v.String("key_name"),
		keyLength: v.Int("key_length"), associatedData: v.String("associated_data"),
	}, nil
}

// Key unwraps the key in document, after a login if one is configured. It uses the file's associated data, as
// OpenTofu does since version 1.13. If the server rejects the request, Key tries again without associated
// data. The configured associated data applies only to new keys.
func (p *provider) Key(ctx context.Context, _ driver.Keys, document json.RawMessage) ([]byte, error) {
	m, err := parse(document)
	if err != nil {
		return nil, err
	}
	key, err := p.decrypt(ctx, m.Ciphertext, m.AssociatedData)
	// Vault ignores associated data for data keys. OpenTofu stores the data even then, and cannot open the
	// file afterwards.
	if _, refused := errors.AsType[cannotOpen](err); refused && m.AssociatedData != "" {
		if key, e := p.decrypt(ctx, m.Ciphertext, ""); e == nil {
			return key, nil
		}
	}
	return key, err
}

func (p *provider) decrypt(ctx context.Context, ciphertext []byte, associatedData string) ([]byte, error) {
	key, _, err := p.key(ctx, "decrypt", map[string]any{"ciphertext": string(ciphertext)}, associatedData)
	return key, err
}

// key performs an operation of the transit engine. It returns the key in the response, and the whole
// response.
func (p *provider) key(
	ctx context.Context, operation string, body map[string]any, associatedData string,
) ([]byte, map[string]any, error) {
	if associatedData != "" {
		body["associated_data"] = associatedData
	}
	client, token, err := p.server.ready(ctx)
	if err != nil {
		return nil, nil, err
	}
	where := p.transit + "/" + operation + "/" + p.keyName // the client escapes the path
	answer, err := p.server.put(ctx, client, token, where, body)
	if err != nil {
		return nil, nil, p.server.explain(ctx, err, where, p.keyName)
	}
	key, err := plaintext(answer.Data)
	return key, answer.Data, err
}

// NewKey requests a data key, as OpenTofu does.
func (p *provider) NewKey(ctx context.Context, _ driver.Keys) ([]byte, json.RawMessage, error) {
	key, answer, err := p.key(ctx, "datakey/plaintext", map[string]any{"bits": p.keyLength * 8}, p.associatedData)
	if err != nil {
		return nil, nil, err
	}
	wrapped, _ := answer["ciphertext"].(string)
	if !recognize.IsTransit([]byte(wrapped)) {
		return nil, nil, errors.New("the answer from the transit engine has no wrapped key")
	}
	if p.associatedData != "" {
		if err := p.checkBound(ctx, key, wrapped); err != nil {
			return nil, nil, err
		}
	}
	document, err := json.Marshal(metadata{Ciphertext: []byte(wrapped), AssociatedData: p.associatedData})
	return key, document, err
}

// checkBound returns an error unless the server can decrypt the new key with the associated data. Vault
// ignores the data for data keys, so the file could not be opened with it later.
func (p *provider) checkBound(ctx context.Context, key []byte, wrapped string) error {
	again, err := p.decrypt(ctx, []byte(wrapped), p.associatedData)
	if _, refused := errors.AsType[cannotOpen](err); refused {
		return errors.New("the server does not bind data keys to associated_data; remove associated_data")
	}
	if err != nil {
		return fmt.Errorf("checking whether the server binds data keys to associated_data: %w", err)
	}
	if subtle.ConstantTimeCompare(again, key) != 1 {
		return errors.New("the transit engine does not decrypt its new key to the same key")
	}
	return nil
}

func parse(document json.RawMessage) (metadata, error) {
	var m metadata
	if len(document) > 4*(maxCiphertext+maxAssociatedData) {
		return m, errors.New("the metadata in the file is too large to come from a transit engine")
	}
	if err := driver.DecodeStored(document, kind, &m); err != nil {
		return m, err
	}
	_, err := base64.StdEncoding.DecodeString(m.AssociatedData)
	switch {
	case len(m.Ciphertext) == 0:
		return m, fmt.Errorf("%w: the metadata in the file has no ciphertext", driver.ErrNoKey)
	case len(m.Ciphertext) > maxCiphertext:
		return m, fmt.Errorf("the file has a wrapped key of %d bytes, but at most %d are allowed", len(m.Ciphertext), maxCiphertext)
	case !recognize.IsTransit(m.Ciphertext): // other kinds may also store a ciphertext
		return m, fmt.Errorf("%w: the metadata in the file does not come from a transit engine", driver.ErrNoKey)
	case err != nil, len(m.AssociatedData) > maxAssociatedData:
		return m, errors.New("the associated_data in the metadata of the file is not base64, or is too long")
	}
	return m, nil
}

// plaintext returns the key in a response, which must have 1 to 1024 bytes.
func plaintext(answer map[string]any) ([]byte, error) {
	text, _ := answer["plaintext"].(string)
	if len(text) > base64.StdEncoding.EncodedLen(maxKeyLength) {
		return nil, fmt.Errorf("the transit engine returned a key of more than %d bytes", maxKeyLength)
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) == 0 {
		return nil, errors.New("the answer from the transit engine has no key")
	}
	return key, nil
}

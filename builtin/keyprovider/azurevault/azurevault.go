// Package azurevault wraps the key of a file with a key of Azure Key Vault or
// of an Azure Managed HSM.
//
// It has the options, the defaults and the metadata of OpenTofu's key provider of the same name:
// opentofu/internal/encryption/keyprovider/azure_vault.
package azurevault

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azkeys"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/azureauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/memo"
)

const (
	maxKeyLength = 1024      // bytes
	maxData      = 64 * 1024 // bytes of a ciphertext or of additional data; the longest key takes about 1 KiB
	maxSmall     = 64        // bytes of an IV, which has 12, or of a tag, which has 16

	// defaultPatience limits one call with all its retries, including the waits that Retry-After headers ask for.
	defaultPatience = 60 * time.Second
)

// Options are settings of a program, and not of its users. The zero value is usable.
type Options struct {
	Transport  policy.Transporter     // the transport of every request to the vault and for tokens
	Credential azcore.TokenCredential // the credential in place of all settings that authenticate
}

const kind = "an azure_vault key provider" // the name of the kind in errors

// Block returns the azure_vault key provider.
func Block() driver.Block[driver.KeyProvider] { return BlockWith(Options{}) }

// BlockWith returns the azure_vault key provider with a program's own transport and credential.
func BlockWith(o Options) driver.Block[driver.KeyProvider] {
	return driver.Block[driver.KeyProvider]{
		Table: table(),
		Build: func(v attr.Values) (driver.KeyProvider, error) { return build(v, o) },
	}
}

type provider struct {
	driver.Wrapping[metadata]

	vault     string // URL
	name      string // the name of the key
	algorithm azkeys.EncryptionAlgorithm
	keyLength int // bytes of new keys
	access    azureauth.Access
	patience  time.Duration // the longest time for one call with its retries

	credential azcore.TokenCredential // the credential in place of access; may be nil
	own        http.RoundTripper      // the transport to close; nil if it is from [Options], or the default one

	clients memo.Memo[struct{}, *azkeys.Client]
}

// Close closes the connections to the vault and to the service that signs in. A connection in
// use is closed after its request.
func (p *provider) Close() {
	if p.own != nil {
		(&http.Client{Transport: p.own}).CloseIdleConnections()
	}
}

type metadata struct {
	Ciphertext                  []byte                     `json:"ciphertext"`
	IV                          []byte                     `json:"iv"`
	AuthenticationTag           []byte                     `json:"authentication_tag"`
	AdditionalAuthenticatedData []byte                     `json:"additional_authenticated_data"`
	KeyVersion                  string                     `json:"key_version"`
	Algorithm                   azkeys.EncryptionAlgorithm `json:"algo"`
}

// Key has the vault decrypt the key in document, with one call after signing in.
func (p *provider) Key(ctx context.Context, _ driver.Keys, document json.RawMessage) ([]byte, error) {
	m, err := parse(document)
	if err != nil {
		return nil, err
	}
	m.Algorithm = cmp.Or(m.Algorithm, p.algorithm)
	client, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	response, err := client.Decrypt(limited, p.name, m.KeyVersion, azkeys.KeyOperationParameters{
		Algorithm:                   &m.Algorithm,
		Value:                       m.Ciphertext,
		IV:                          m.IV,
		AuthenticationTag:           m.AuthenticationTag,
		AdditionalAuthenticatedData: m.AdditionalAuthenticatedData,
	}, nil)
	if err != nil {
		return nil, p.explain(ctx, "decrypt", err)
	}
	if n := len(response.Result); n == 0 || n > maxKeyLength {
		return nil, fmt.Errorf("the decrypted key has %d bytes; 1 to %d are required", n, maxKeyLength)
	}
	return response.Result, nil
}

// NewKey makes a random key and has the current version of the vault's key
// encrypt it.
func (p *provider) NewKey(ctx context.Context, _ driver.Keys) ([]byte, json.RawMessage, error) {
	key := make([]byte, p.keyLength)
	_, _ = rand.Read(key) // never fails
	client, err := p.connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	limited, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	response, err := client.Encrypt(limited, p.name, "", azkeys.KeyOperationParameters{Algorithm: &p.algorithm, Value: key}, nil)
	if err != nil {
		return nil, nil, p.explain(ctx, "encrypt", err)
	}
	m := metadata{
		Ciphertext:                  response.Result,
		IV:                          response.IV,
		AuthenticationTag:           response.AuthenticationTag,
		AdditionalAuthenticatedData: response.AdditionalAuthenticatedData,
		KeyVersion:                  response.KID.Version(),
		Algorithm:                   p.algorithm,
	}
	// Without the version, the file could not be read after the key's rotation.
	if m.KeyVersion == "" {
		return nil, nil, errors.New("the vault does not say which version of the key it encrypted with")
	}
	document, err := json.Marshal(m)
	if err == nil {
		_, err = parse(document)
	}
	return key, document, err
}

// connect returns the client, which it makes when it is first needed.
func (p *provider) connect(ctx context.Context) (*azkeys.Client, error) {
	return p.clients.Do(ctx, struct{}{}, func(ctx context.Context) (*azkeys.Client, error) {
		credential, err := p.credential, error(nil)
		if credential == nil {
			credential, err = p.access.Open(ctx)
		}
		if err != nil {
			return nil, err
		}
		client, err := azkeys.NewClient(p.vault, credential, &azkeys.ClientOptions{ClientOptions: p.access.ClientOptions()})
		if err != nil {
			return nil, errors.New("the client of the vault cannot be set up")
		}
		return client, nil
	})
}

// Recognizes reports whether document is valid metadata of this kind, with a key version and an algorithm.
func (p *provider) Recognizes(document json.RawMessage) bool {
	m, err := parse(document)
	return err == nil && m.KeyVersion != "" && m.Algorithm != ""
}

// keyVersion matches versions that may become part of a URL. Azure's versions are 32
// hexadecimal digits.
var keyVersion = lazyregexp.New(`^[0-9A-Za-z]*$`)

func parse(document json.RawMessage) (metadata, error) {
	var m metadata
	if err := driver.DecodeStored(document, kind, &m); err != nil {
		return m, err
	}
	switch {
	case len(m.Ciphertext) == 0:
		return m, fmt.Errorf("%w: the metadata in the file lacks a ciphertext", driver.ErrNoKey)
	case len(m.Ciphertext) > maxData, len(m.AdditionalAuthenticatedData) > maxData, len(m.IV) > maxSmall, len(m.AuthenticationTag) > maxSmall:
		return m, errors.New("the metadata in the file is larger than any that a vault makes")
	case len(m.KeyVersion) > 64 || !keyVersion.MatchString(m.KeyVersion):
		return m, errors.New("the metadata in the file names an impossible version of the key")
	}
	switch m.Algorithm {
	case "", azkeys.EncryptionAlgorithmRSAOAEP256,
		azkeys.EncryptionAlgorithmA128GCM, azkeys.EncryptionAlgorithmA192GCM, azkeys.EncryptionAlgorithmA256GCM:
		return m, nil
	}
	// The other algorithms are weaker: with RSA1_5, and with CBC without authentication, a
	// person who can write the file could use the vault as an oracle.
	return m, errors.New("the metadata in the file names an algorithm other than RSA-OAEP-256, A128GCM, A192GCM and A256GCM")
}

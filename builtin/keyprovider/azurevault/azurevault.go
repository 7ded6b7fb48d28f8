// Package azurevault implements a key provider that wraps the key of each file with a key in Azure Key Vault
// or Azure Managed HSM.
//
// Its options, defaults and metadata are compatible with OpenTofu's key provider of the same name
// (opentofu/internal/encryption/keyprovider/azure_vault).
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
	maxKeyLength = 1024      // in bytes
	maxData      = 64 * 1024 // the maximum size of a ciphertext or additional data, in bytes; a key takes up to 1 KiB
	maxSmall     = 64        // the maximum size of an IV (which has 12 bytes) or a tag (which has 16)

	// defaultPatience is the time limit for a call and its retries, including the delays that Retry-After
	// headers request.
	defaultPatience = 60 * time.Second
)

// Options contains settings for programs that build the key provider. Users cannot set them. The zero value
// is valid.
type Options struct {
	Transport  policy.Transporter     // for all requests to the vault and for tokens; nil for the default
	Credential azcore.TokenCredential // used instead of all settings for authentication, unless nil
}

const kind = "an azure_vault key provider" // the name of this kind in error messages

// Block returns the azure_vault key provider.
func Block() driver.Block[driver.KeyProvider] { return BlockWith(Options{}) }

// BlockWith returns the azure_vault key provider with the given options.
func BlockWith(o Options) driver.Block[driver.KeyProvider] {
	return driver.Block[driver.KeyProvider]{
		Table: table(),
		Build: func(v attr.Values) (driver.KeyProvider, error) { return build(v, o) },
	}
}

type provider struct {
	driver.Wrapping[metadata]

	vault     string // the URL of the vault
	name      string // the name of the key
	algorithm azkeys.EncryptionAlgorithm
	keyLength int // the length of new keys, in bytes
	access    azureauth.Access
	patience  time.Duration // the time limit for a call and its retries

	credential azcore.TokenCredential // used instead of access, unless nil
	own        http.RoundTripper      // the transport to close; nil if it comes from [Options]

	clients memo.Memo[struct{}, *azkeys.Client]
}

// Close closes idle connections to the vault and to the sign-in service. Connections in use are closed after
// their request.
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

// Key asks the vault to decrypt the key in document, with a single call after signing in.
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
		return nil, fmt.Errorf("the decrypted key has %d bytes, but 1 to %d are allowed", n, maxKeyLength)
	}
	return response.Result, nil
}

// NewKey creates a random key and asks the vault to encrypt it with the current version of the vault's key.
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
	// Without the version, the file could not be read after the vault's key is rotated.
	if m.KeyVersion == "" {
		return nil, nil, errors.New("the vault did not return the version of the key that it used")
	}
	document, err := json.Marshal(m)
	if err == nil {
		_, err = parse(document)
	}
	return key, document, err
}

// connect returns the client, which it creates on first use.
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
			return nil, errors.New("the client for the vault cannot be created")
		}
		return client, nil
	})
}

// Recognizes reports whether document is valid metadata of this kind that contains a key version and an
// algorithm.
func (p *provider) Recognizes(document json.RawMessage) bool {
	m, err := parse(document)
	return err == nil && m.KeyVersion != "" && m.Algorithm != ""
}

// keyVersion matches key versions that are safe to use in a URL. Azure's versions have 32 hexadecimal digits.
var keyVersion = lazyregexp.New(`^[0-9A-Za-z]*$`)

func parse(document json.RawMessage) (metadata, error) {
	var m metadata
	if err := driver.DecodeStored(document, kind, &m); err != nil {
		return m, err
	}
	switch {
	case len(m.Ciphertext) == 0:
		return m, fmt.Errorf("%w: the metadata in the file has no ciphertext", driver.ErrNoKey)
	case len(m.Ciphertext) > maxData, len(m.AdditionalAuthenticatedData) > maxData, len(m.IV) > maxSmall, len(m.AuthenticationTag) > maxSmall:
		return m, errors.New("the metadata in the file is too large to come from a vault")
	case len(m.KeyVersion) > 64 || !keyVersion.MatchString(m.KeyVersion):
		return m, errors.New("the metadata in the file has an invalid key version")
	}
	switch m.Algorithm {
	case "", azkeys.EncryptionAlgorithmRSAOAEP256,
		azkeys.EncryptionAlgorithmA128GCM, azkeys.EncryptionAlgorithmA192GCM, azkeys.EncryptionAlgorithmA256GCM:
		return m, nil
	}
	// The other algorithms are weaker: with RSA1_5, or CBC without authentication, an attacker who can write
	// the file could use the vault as a decryption oracle.
	return m, errors.New("the metadata in the file names an unknown algorithm; RSA-OAEP-256, A128GCM, A192GCM and A256GCM are supported")
}

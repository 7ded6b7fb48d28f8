// Package gcpkms implements a key provider that wraps the key of each file with a key in Google Cloud KMS.
//
// Its options, defaults and metadata are compatible with OpenTofu's key provider of the same name
// (opentofu/internal/encryption/keyprovider/gcp_kms).
package gcpkms

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/googleauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/memo"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
)

const (
	maxKeyLength      = 1024      // in bytes; OpenTofu's limit
	maxAdditionalData = 64 * 1024 // in bytes; the limit of Cloud KMS
	maxCiphertext     = 64 * 1024 // in bytes; the longest key takes about 1.1 KiB
)

const kind = "a gcp_kms key provider" // the name of this kind in error messages

// Options contains settings for programs that build the key provider. Users cannot set them. The zero value
// is valid.
type Options struct {
	// Transport is used for requests to Cloud KMS. Token requests use http.DefaultTransport.
	Transport http.RoundTripper
}

// Block returns the gcp_kms key provider.
func Block() driver.Block[driver.KeyProvider] { return BlockWith(Options{}) }

// BlockWith returns the gcp_kms key provider with the given options.
func BlockWith(o Options) driver.Block[driver.KeyProvider] {
	return driver.Block[driver.KeyProvider]{
		Table: table(),
		Build: func(v attr.Values) (driver.KeyProvider, error) { return build(v, o) },
	}
}

// keyHarmless is the value of [attr.Attr.Harmless] for attributes that describe a key.
const keyHarmless = "It says which key Google is asked for, and Google is asked in any case."

func table() attr.Table {
	return attr.Table{
		Name:       "gcp_kms",
		OtherNames: []string{"gcp", "google"},
		Example:    []string{"kms_encryption_key = var.kms_encryption_key", "key_length = 32"},
		Doc: "Google Cloud KMS wraps the key of each file. Reading requires `cloudkms.cryptoKeyVersions.useToDecrypt`. Without " +
			"`access_token` and `credentials`, the application default credentials are used.",
		Attrs: slices.Concat([]attr.Attr{
			{Name: "kms_encryption_key", Type: cty.String, Required: true, Form: attr.Path, Harmless: keyHarmless,
				Check: attr.Is(keyName.MatchString, "this is not the full resource name of a key; write it as "+
					"projects/P/locations/L/keyRings/R/cryptoKeys/K, without a version"),
				Doc: "The key's resource name: `projects/…/locations/…/keyRings/…/cryptoKeys/…`."},
			{Name: "key_length", Type: cty.Number, Required: true, Harmless: keyHarmless, Check: attr.Between(1, maxKeyLength),
				Doc: "The length of new keys in bytes, from 1 to 1024; `aes_gcm` needs 16, 24 or 32. A file that is read has its own."},
		}, googleauth.Attrs("GOOGLE_CREDENTIALS", "GOOGLE_APPLICATION_CREDENTIALS"), []attr.Attr{
			{Name: "additional_authenticated_data", Type: cty.String, Harmless: keyHarmless, Check: attr.Text(checkAdditional),
				Doc: "Data that the key is bound to, in standard base64, of at most 64 KiB. It is not stored in the file: reading needs the same " +
					"value as encrypting. OpenTofu has it from 1.13 on."},
		}),
	}
}

// checkAdditional returns an error unless text is standard base64 of at most 64 KiB of data. It omits the
// decoder's error, because the position of a mistake is no help to users.
func checkAdditional(text string) error {
	data, err := base64.StdEncoding.DecodeString(text)
	switch {
	case err != nil:
		return errors.New("this is not standard base64; use base64encode(…) for text")
	case len(data) > maxAdditionalData:
		return errors.New("the data is longer than 64 KiB; shorten it")
	}
	return nil
}

type provider struct {
	driver.Wrapping[metadata]

	name           string // the resource name of the key
	keyLength      int    // the length of new keys, in bytes
	additionalData []byte
	access         googleauth.Access
	wire           web.Wire
	own            *http.Transport // the transport to close; nil if it comes from [Options]

	bearers memo.Memo[struct{}, *googleauth.Bearer]
}

type metadata struct {
	Ciphertext []byte `json:"ciphertext"`
}

var keyName = lazyregexp.New(`^projects/[^/\s.][^/\s]*/locations/[^/\s.][^/\s]*/keyRings/[^/\s.][^/\s]*/cryptoKeys/[^/\s.][^/\s]*$`)

func build(v attr.Values, o Options) (driver.KeyProvider, error) {
	p := &provider{
		Wrapping: driver.Wrapping[metadata]{Kind: kind, Parse: parse},

		name: v.String("kms_encryption_key"), keyLength: int(v.Int("key_length")), wire: web.Wire{Transport: o.Transport},
	}
	p.wire.Patience = web.Patience{Timeout: 20 * time.Second, Tries: 2, WaitMin: 500 * time.Millisecond, WaitMax: 10 * time.Second}
	// checkAdditional has already checked the text.
	p.additionalData, _ = base64.StdEncoding.DecodeString(v.String("additional_authenticated_data"))
	p.access = googleauth.New(v, v.Environment(), "https://www.googleapis.com/auth/cloud-platform", scope)
	p.access.ImpersonateScopes = []string{scope} // as in OpenTofu
	if o.Transport == nil {
		p.own = web.Transport(p.access.World, &tls.Config{MinVersion: tls.VersionTLS12}, web.Proxies(p.access.World.Lookup))
		p.wire.Transport = p.own
	}
	return p, nil
}

// Key asks Cloud KMS to decrypt the key in document, with a single call after signing in.
func (p *provider) Key(ctx context.Context, _ driver.Keys, document json.RawMessage) ([]byte, error) {
	m, err := parse(document)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Plaintext []byte      `json:"plaintext"`
		Checksum  json.Number `json:"plaintextCrc32c"`
	}
	err = p.call(ctx, "decrypt", map[string]any{
		"ciphertext": m.Ciphertext, "ciphertextCrc32c": checksum(m.Ciphertext),
		"additionalAuthenticatedData": p.additionalData, "additionalAuthenticatedDataCrc32c": checksum(p.additionalData),
	}, &answer)
	if err != nil {
		return nil, err
	}
	// Cloud KMS always sends a checksum, but emulators may not. Even without a checksum, a corrupted key is
	// detected, because it cannot open the file.
	if answer.Checksum != "" && string(answer.Checksum) != checksum(answer.Plaintext) {
		return nil, errors.New("the answer from Cloud KMS was damaged in transit: its checksum does not match; try again")
	}
	if n := len(answer.Plaintext); n == 0 || n > maxKeyLength {
		return nil, fmt.Errorf("the key from Cloud KMS has %d bytes, but 1 to %d are allowed", n, maxKeyLength)
	}
	return answer.Plaintext, nil
}

// NewKey creates a random key and asks Cloud KMS to encrypt it.
func (p *provider) NewKey(ctx context.Context, _ driver.Keys) ([]byte, json.RawMessage, error) {
	key := make([]byte, p.keyLength)
	_, _ = rand.Read(key) // never fails
	var answer struct {
		metadata
		Checksum       json.Number `json:"ciphertextCrc32c"`
		PlaintextCame  bool        `json:"verifiedPlaintextCrc32c"`
		AdditionalCame bool        `json:"verifiedAdditionalAuthenticatedDataCrc32c"`
	}
	err := p.call(ctx, "encrypt", map[string]any{
		"plaintext": key, "plaintextCrc32c": checksum(key),
		"additionalAuthenticatedData": p.additionalData, "additionalAuthenticatedDataCrc32c": checksum(p.additionalData),
	}, &answer)
	if err != nil {
		return nil, nil, err
	}
	// If the request or the response were corrupted, the file could never be opened again, so all checksums
	// are required. See https://cloud.google.com/kms/docs/data-integrity-guidelines.
	if !answer.PlaintextCame || !answer.AdditionalCame || string(answer.Checksum) != checksum(answer.Ciphertext) {
		return nil, nil, errors.New("the request to Cloud KMS or its answer was damaged in transit: a checksum does not match; try " +
			"again")
	}
	document, err := json.Marshal(answer.metadata)
	return key, document, err
}

// Recognizes reports whether document is metadata of this kind: a ciphertext and nothing else. Metadata of
// openbao has the same shape, but its ciphertext has the prefix of the transit engine.
func (p *provider) Recognizes(document json.RawMessage) bool {
	var members map[string]json.RawMessage
	m, err := parse(document)
	return err == nil && json.Unmarshal(document, &members) == nil && len(members) == 1 &&
		!recognize.IsTransit(m.Ciphertext)
}

func parse(document json.RawMessage) (metadata, error) {
	var m metadata
	if err := driver.DecodeStored(document, kind, &m); err != nil {
		return m, err
	}
	switch {
	case len(m.Ciphertext) == 0:
		return m, fmt.Errorf("%w: the metadata in the file has no ciphertext", driver.ErrNoKey)
	case len(m.Ciphertext) > maxCiphertext:
		return m, fmt.Errorf("the metadata in the file has a ciphertext of %d bytes, but at most %d are allowed", len(m.Ciphertext),
			maxCiphertext)
	}
	return m, nil
}

// checksum returns the CRC32C of data in the form that Cloud KMS expects: a 64-bit number, which its JSON
// encodes as a string. The checksum is sent even for empty data, to show that the data is meant to be empty.
func checksum(data []byte) string {
	return strconv.FormatUint(uint64(crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))), 10)
}

const (
	// host is the host of Cloud KMS. Environment variables and credentials cannot change it, because the host
	// receives new keys in plaintext. See https://cloud.google.com/kms/docs/reference/rest.
	host = "cloudkms.googleapis.com"

	// scope is the OAuth scope that covers only Cloud KMS; see
	// https://developers.google.com/identity/protocols/oauth2/scopes#cloudkms.
	scope = "https://www.googleapis.com/auth/cloudkms"
)

// Close closes idle connections to Cloud KMS. Connections in use are closed after their request.
func (p *provider) Close() {
	if p.own != nil {
		p.own.CloseIdleConnections()
	}
}

// call sends a request for the key to Cloud KMS. The verb is encrypt or decrypt; see
// https://cloud.google.com/kms/docs/reference/rest/v1/projects.locations.keyRings.cryptoKeys.
func (p *provider) call(ctx context.Context, verb string, question, answer any) error {
	bearer, err := p.bearers.Do(ctx, struct{}{}, p.access.Open)
	if err != nil {
		return err
	}
	address := url.URL{Scheme: "https", Host: host, Path: "/v1/" + p.name + ":" + verb}
	status, body, err := bearer.Post(ctx, p.wire, address.String(), question)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("waiting for Cloud KMS: %w", ctx.Err())
	case err != nil:
		return fmt.Errorf("no answer from Cloud KMS: %w", err)
	case status != http.StatusOK:
		return p.refusal(verb, status, body)
	case json.Unmarshal(body, answer) != nil: // omits the error from Unmarshal, because it quotes the response
		return p.unexpected(verb, "the answer cannot be read")
	}
	return nil
}

// Package pbkdf2 derives the key of a file from a passphrase, or from the key of another key
// provider, with PBKDF2 (RFC 8018).
//
// It has the same options, defaults and metadata as OpenTofu's key provider of the same name:
// opentofu/internal/encryption/keyprovider/pbkdf2.
package pbkdf2

import (
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"math"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/memo"
)

const (
	minPassphrase = 16      // bytes
	minIterations = 200_000 // the minimum for new keys; a file may have fewer

	// These limits apply to the numbers in a file, which anyone who can write the file can choose.
	// Ten million iterations take about four seconds on a laptop.
	defaultMaxIterations = 10_000_000
	maxKeyLength         = 1024 // bytes
	maxSaltLength        = 4096 // bytes

	// These are the minimums for metadata that Stored returns.
	minDerivedSalt = 16 // bytes
	minDerivedKey  = 16 // bytes
)

const kind = "a pbkdf2 key provider" // the name of the kind in errors

// maxKept is the maximum number of derived keys that all key providers of a Block keep together.
const maxKept = 1000

// Block returns the pbkdf2 key provider. All key providers that are built from one Block share
// derived keys, so that the key for a passphrase, a salt and parameters is derived only once.
func Block() driver.Block[driver.KeyProvider] {
	derived := memo.NewSecrets(maxKept)
	build := func(v attr.Values) (driver.KeyProvider, error) { return build(v, derived) }
	return driver.Block[driver.KeyProvider]{Build: build, Table: attr.Table{
		Name:       "pbkdf2",
		OtherNames: []string{"passphrase", "password"},
		Example:    []string{"passphrase = var.passphrase"},
		Doc:        "Derives the key from a passphrase, or from the key of another key provider, with PBKDF2.",
		Attrs: []attr.Attr{
			{Name: "passphrase", Type: cty.String, Required: true, Excludes: []string{"chain"}, Form: attr.Passphrase, Secrecy: attr.LocalSecret,
				Doc: "The passphrase, of at least 16 bytes. Exactly one of `passphrase` and `chain` is required."},
			{Name: "chain", Type: cty.String, Form: attr.KeyProvider, Doc: "The address of the key provider whose key is " +
				"used instead of the passphrase, such as `key_provider.static.root`."},
			{Name: "iterations", Type: cty.Number, Default: cty.NumberIntVal(600_000), Check: attr.Between(minIterations, math.MaxInt32),
				Doc: "Iterations for new keys, at least 200000. A file that is read names its own. Defaults to `600000`."},
			{Name: "key_length", Type: cty.Number, Default: cty.NumberIntVal(32), Check: attr.Between(1, maxKeyLength),
				Doc: "The length of new keys in bytes. A file that is read names its own. Defaults to `32`."},
			{Name: "salt_length", Type: cty.Number, Default: cty.NumberIntVal(32), Check: attr.Between(1, maxSaltLength),
				Doc: "Length of new salts in bytes. A file that is read holds its own salt. Defaults to `32`."},
			{Name: "hash_function", Type: cty.String, Default: cty.StringVal("sha512"), Check: attr.Text(checkHash), Doc: "`sha512` or " +
				"`sha256`, for new keys. A file that is read names its own. Defaults to `sha512`."},
			{Name: "max_iterations", Type: cty.Number, Default: cty.NumberIntVal(defaultMaxIterations), Check: attr.Between(1, math.MaxInt32),
				Doc: "The most work that a file may require: its iterations times the hash blocks of its key. A " +
					"file that requires more is refused before any work is done. Defaults to `10000000`, which takes a " +
					"few seconds."},
		},
	}}
}

type provider struct {
	passphrase    []byte
	chain         string
	fresh         metadata // the parameters of new keys, without a salt
	saltLength    int
	maxIterations int64
	derived       *memo.Secrets // keys by the digest of a passphrase and metadata
}

var (
	_ driver.Salter     = (*provider)(nil)
	_ driver.Closer     = (*provider)(nil)
	_ driver.Recognizer = (*provider)(nil)
	_ driver.Deriver    = (*provider)(nil)
)

// hashFunctions maps the name that a file stores to the hash function.
var hashFunctions = map[string]func() hash.Hash{"sha512": sha512.New, "sha256": sha256.New}

func checkHash(name string) error {
	if hashFunctions[name] == nil {
		return errors.New("the hash function must be sha512 or sha256")
	}
	return nil
}

// metadata is the document that a file stores. The member names are from
// opentofu/internal/encryption/keyprovider/pbkdf2/metadata.go.
type metadata struct {
	Salt         []byte `json:"salt"`
	Iterations   int64  `json:"iterations"`
	HashFunction string `json:"hash_function"`
	KeyLength    int64  `json:"key_length"`
}

func build(v attr.Values, derived *memo.Secrets) (driver.KeyProvider, error) {
	p := &provider{
		passphrase: []byte(v.String("passphrase")), chain: v.String("chain"),
		fresh:      metadata{Iterations: v.Int("iterations"), KeyLength: v.Int("key_length"), HashFunction: v.String("hash_function")},
		saltLength: int(v.Int("salt_length")), maxIterations: v.Int("max_iterations"), derived: derived,
	}
	if p.chain == "" && len(p.passphrase) < minPassphrase {
		return nil, v.Errorf("passphrase", "the passphrase is too short: at least %d bytes are required", minPassphrase)
	}
	return p, nil
}

// Key derives the key that document describes.
func (p *provider) Key(ctx context.Context, keys driver.Keys, document json.RawMessage) ([]byte, error) {
	m, err := parse(document)
	if err != nil {
		return nil, err
	}
	if err := p.limit(m); err != nil {
		return nil, err
	}
	return p.derive(ctx, keys, m)
}

// NewKey derives a key with a new salt.
func (p *provider) NewKey(ctx context.Context, keys driver.Keys) ([]byte, json.RawMessage, error) {
	document := p.NewDocument()
	key, err := p.Key(ctx, keys, document)
	if err != nil {
		return nil, nil, err
	}
	return key, document, nil
}

// NewDocument returns the configured parameters with a new salt.
func (p *provider) NewDocument() json.RawMessage {
	m := p.fresh
	m.Salt = make([]byte, p.saltLength)
	_, _ = rand.Read(m.Salt)       // never fails
	document, _ := json.Marshal(m) // never fails for numbers, bytes and a name
	return document
}

// IsCurrent reports whether stored contains the configured parameters and a salt of the configured
// length.
func (p *provider) IsCurrent(stored json.RawMessage) bool {
	m, err := parse(stored)
	if err != nil || len(m.Salt) != p.saltLength {
		return false
	}
	return m.Iterations == p.fresh.Iterations && m.HashFunction == p.fresh.HashFunction && m.KeyLength == p.fresh.KeyLength
}

// Close overwrites and forgets the derived keys, including the keys of other key providers built
// from the same Block.
func (p *provider) Close() { p.derived.Clear() }

// Recognizes reports whether document is metadata of this kind.
func (p *provider) Recognizes(document json.RawMessage) bool {
	_, err := parse(document)
	return err == nil
}

// Stored returns metadata for derived keys: the configured parameters with salt, or wrapped. The
// metadata must have a salt and a key of at least 16 bytes, and at least 200,000 iterations.
func (p *provider) Stored(salt []byte, wrapped json.RawMessage) (json.RawMessage, error) {
	m := p.fresh
	switch {
	case salt != nil && wrapped != nil:
		return nil, errors.New("salt and wrapped_key are mutually exclusive; set one of them")
	case wrapped != nil:
		var err error
		if m, err = parse(wrapped); err != nil {
			return nil, err
		}
	case salt != nil:
		m.Salt = salt
	default:
		return nil, errors.New("the salt is missing, so each run would derive another key; set the argument salt to the output of " +
			"openssl rand -base64 32, and keep the salt")
	}
	switch {
	case len(m.Salt) < minDerivedSalt:
		return nil, fmt.Errorf("the salt has %d bytes, but at least %d are required; set the argument salt to the output of "+
			"openssl rand -base64 32", len(m.Salt), minDerivedSalt)
	case m.Iterations < minIterations:
		return nil, fmt.Errorf("the key provider has %d iterations, but at least %d are required", m.Iterations, minIterations)
	case m.KeyLength < minDerivedKey:
		return nil, fmt.Errorf("the key_length is %d bytes, but at least %d are required", m.KeyLength, minDerivedKey)
	}
	return json.Marshal(m)
}

func parse(document json.RawMessage) (metadata, error) {
	var m metadata
	if err := driver.DecodeStored(document, kind, &m); err != nil {
		return m, err
	}
	if len(m.Salt) == 0 || m.Iterations == 0 || m.HashFunction == "" || m.KeyLength == 0 {
		return m, fault.With(fmt.Errorf("%w: the metadata in the file has no salt, iterations, hash_function or key_length",
			driver.ErrNoKey), "check which kind of key provider wrote the metadata, or restore an intact copy")
	}
	if err := checkHash(m.HashFunction); err != nil {
		return m, fmt.Errorf("the metadata in the file is damaged: %w", err)
	}
	if m.Iterations < 0 || m.KeyLength < 0 {
		return m, errors.New("the metadata in the file has a negative number; restore an intact copy")
	}
	return m, nil
}

// limit returns an error for metadata that would cost too much work, before any work is done. The
// work is iterations times blocks, because PBKDF2 repeats its iterations for each block of the key.
func (p *provider) limit(m metadata) error {
	size := int64(hashFunctions[m.HashFunction]().Size())
	switch {
	case m.KeyLength > maxKeyLength:
		return fmt.Errorf("the file requires a key of %d bytes, but at most %d are allowed", m.KeyLength, maxKeyLength)
	case len(m.Salt) > maxSaltLength:
		return fmt.Errorf("the file has a salt of %d bytes, but at most %d are allowed", len(m.Salt), maxSaltLength)
	case m.Iterations > p.maxIterations/((m.KeyLength+size-1)/size):
		return fmt.Errorf("the file requires %d iterations for a key of %d bytes, but max_iterations allows %d in total; raise "+
			"max_iterations if you trust the writer of the file", m.Iterations, m.KeyLength, p.maxIterations)
	}
	return nil
}

func (p *provider) derive(ctx context.Context, keys driver.Keys, m metadata) ([]byte, error) {
	password := p.passphrase
	if p.chain != "" {
		upstream, err := keys(ctx, p.chain)
		if err != nil {
			return nil, err
		}
		if len(upstream) < minPassphrase {
			return nil, fmt.Errorf("the key of %s has %d bytes, but the argument chain needs at least %d", p.chain, len(upstream), minPassphrase)
		}
		password = upstream
	}
	return p.derived.Do(ctx, identity(password, m), func(context.Context) ([]byte, error) {
		return pbkdf2.Key(hashFunctions[m.HashFunction], string(password), m.Salt, int(m.Iterations), int(m.KeyLength))
	})
}

// identity returns a digest of everything that a key is derived from.
func identity(password []byte, m metadata) string {
	digest := sha256.Sum256(fmt.Appendf(nil, "%x %x %d %s %d", password, m.Salt, m.Iterations, m.HashFunction, m.KeyLength))
	return string(digest[:])
}

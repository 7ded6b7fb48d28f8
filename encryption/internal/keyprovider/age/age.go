// Package age seals the key of each file for several people and machines, with age:
// https://age-encryption.org/v1. Any one of their identities opens the key.
//
// OpenTofu's external key provider stores the same metadata under the same name if its program is
// "statecrypt key-provider age". Each of the two therefore opens the other's files.
package age

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"filippo.io/age"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/agefile"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/mark"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
)

const (
	keyLength = 32 // bytes, for AES-256

	// maxSealed is the maximum size of the sealed key. Each recipient takes about 100 bytes, or
	// 1,600 if it is hybrid, and is tried with each identity.
	maxSealed = 128 << 10 // bytes

	kind = "an age key provider" // the name of the kind in errors
)

// Block returns the age key provider.
func Block() driver.Block[driver.KeyProvider] {
	return driver.Block[driver.KeyProvider]{
		Table: attr.Table{
			Name:    "age",
			Example: []string{`identity_files = ["key.txt"]`},
			Doc: "Keys that [age](https://age-encryption.org) seals for several recipients. OpenTofu writes them with the program " +
				"`statecrypt key-provider age`.",
			Attrs: agefile.Attrs("Only those who encrypt need it; an empty list is an error there."),
		},
		Build:        build,
		MetadataKind: "external",
	}
}

type provider struct {
	driver.Wrapping[metadata]

	identities *agefile.Identities
	recipients []age.Recipient
}

var (
	_ driver.KeyMaker   = (*provider)(nil)
	_ driver.Recognizer = (*provider)(nil)
	_ driver.Deriver    = (*provider)(nil)
)

// metadata is the document that a file stores: the key, as an age file.
type metadata struct {
	ExternalData struct {
		Sealed []byte `json:"statecrypt_age_key"` // [mark.AgeKey]
	} `json:"external_data"`
}

func build(v attr.Values) (driver.KeyProvider, error) {
	recipients, err := agefile.Recipients(v)
	if err != nil {
		return nil, err
	}
	wrapping := driver.Wrapping[metadata]{Kind: kind, Parse: parse}
	p := &provider{Wrapping: wrapping, identities: agefile.NewIdentities(v), recipients: recipients}
	if !p.identities.Any() && len(recipients) == 0 {
		return nil, v.Errorf("", "no identities, identity_files or recipients are set; set identities to open files, or recipients to "+
			"encrypt files")
	}
	return p, nil
}

// Key opens the key in document with the first identity that matches.
func (p *provider) Key(ctx context.Context, _ driver.Keys, document json.RawMessage) ([]byte, error) {
	m, err := parse(document)
	if err != nil {
		return nil, err
	}
	if !p.identities.Any() {
		return nil, fault.Known(fault.With(fmt.Errorf("%w: only recipients are set, and these cannot open files",
			driver.ErrNoKey), "set identities or identity_files"), fault.NoIdentity{})
	}
	identities, err := p.identities.Load()
	if err != nil {
		return nil, err
	}
	key, err := agefile.Open(ctx, m.ExternalData.Sealed, identities)
	if err == nil && len(key) != keyLength {
		return nil, fmt.Errorf("%w: its key has %d bytes instead of %d", driver.ErrDamaged, len(key), keyLength)
	}
	return key, err
}

// NewKey makes a key and seals it for all recipients.
func (p *provider) NewKey(ctx context.Context, _ driver.Keys) ([]byte, json.RawMessage, error) {
	if len(p.recipients) == 0 {
		return nil, nil, errors.New("no recipients are set, so no file can be encrypted; set, for example, recipients = [\"age1…\"]")
	}
	key := make([]byte, keyLength)
	rand.Read(key) //nolint:errcheck // never fails
	var m metadata
	var err error
	if m.ExternalData.Sealed, err = agefile.Seal(ctx, key, p.recipients...); err != nil {
		return nil, nil, err
	}
	if n := len(m.ExternalData.Sealed); n > maxSealed {
		return nil, nil, fmt.Errorf("the key for %d recipients has %d bytes when encrypted, but at most %d are allowed; remove recipients",
			len(p.recipients), n, maxSealed)
	}
	if err := p.checkOwn(ctx, m.ExternalData.Sealed); err != nil {
		return nil, nil, err
	}
	document, err := json.Marshal(m)
	return key, document, err
}

// checkOwn returns an error if the configured identities could not open the sealed key. It accepts
// every key if no identity is configured. It also accepts every key if an identity belongs to a
// plugin, because a user might have to touch a device.
func (p *provider) checkOwn(ctx context.Context, sealed []byte) error {
	if !p.identities.Any() {
		return nil
	}
	identities, err := p.identities.Load()
	if err == nil && !agefile.HavePlugins(identities) {
		_, err = agefile.Open(ctx, sealed, identities)
	}
	if errors.Is(err, driver.ErrNoKey) {
		return notOwnError{}
	}
	return err
}

// notOwnError is the error for a new key that the configured identities cannot open. It counts as
// [driver.ErrNoKey].
type notOwnError struct{}

func (notOwnError) Error() string {
	return "none of the identities matches a recipient; add the recipient of an identity. If only others must open the file, remove " +
		"the identities"
}

func (notOwnError) Is(target error) bool { return target == driver.ErrNoKey }

// parse returns the metadata in document. It accepts no members except the sealed key.
func parse(document json.RawMessage) (m metadata, err error) {
	var members map[string]map[string]json.RawMessage
	if err := driver.DecodeStored(document, kind, &members); err != nil {
		return m, err
	}
	data := members["external_data"]
	if len(data) > 0 && data[mark.AgeKey] == nil {
		return m, fault.With(fmt.Errorf("%w: the metadata comes from another program of key_provider \"external\"",
			driver.ErrNoKey), "configure that program as key_provider \"external\" with its command")
	}
	if len(members) != 1 || len(data) != 1 || data[mark.AgeKey] == nil || json.Unmarshal(document, &m) != nil ||
		!recognize.IsAge(m.ExternalData.Sealed) || len(m.ExternalData.Sealed) > maxSealed {
		return m, fmt.Errorf("%w: its metadata does not come from %s; restore an intact copy", driver.ErrDamaged, kind)
	}
	return m, nil
}

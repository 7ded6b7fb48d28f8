// Package age opens and seals age files; see https://age-encryption.org/v1.
package age

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"filippo.io/age"
	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/internal/agefile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
)

// Block returns the age method.
func Block() driver.Block[driver.Method] {
	return driver.Block[driver.Method]{
		Table: attr.Table{
			Name:    "age",
			Example: []string{`identity_files = ["key.txt"]`},
			Doc: "Files encrypted by [age](https://age-encryption.org). At least one of `identities`, `identity_files` and `passphrase` is " +
				"needed. A document that sops encrypted for an age key is for `sops`.",
			Attrs: slices.Insert(agefile.Attrs("Only those who encrypt need it."), 3, attr.Attr{
				Name: "passphrase", Type: cty.String, Form: attr.Passphrase, Secrecy: attr.LocalSecret,
				Doc: fmt.Sprintf("For files that were encrypted with a passphrase, `age --passphrase`. A file "+
					"may demand a scrypt work factor of at most %d, which takes 1 GiB of memory.", agefile.MaxWorkFactor),
			}),
		},
		Build:     build,
		OwnFormat: recognize.IsAge,
	}
}

type method struct {
	identities *agefile.Identities
	passphrase string
	recipients []age.Recipient
}

var _ driver.Encrypter = (*method)(nil)

func build(v attr.Values) (driver.Method, error) {
	recipients, err := agefile.Recipients(v)
	if err != nil {
		return nil, err
	}
	m := &method{identities: agefile.NewIdentities(v), passphrase: v.String("passphrase"), recipients: recipients}
	if !m.identities.Any() && len(m.recipients) == 0 && m.passphrase == "" {
		return nil, v.Errorf("", "no identities, identity_files, recipients or passphrase are set; set one of them")
	}
	return m, nil
}

// Decrypt opens file with the first identity that matches, or with the passphrase.
func (m *method) Decrypt(ctx context.Context, _ driver.Keys, file []byte) ([]byte, error) {
	identities, err := m.identities.Load()
	if err != nil {
		return nil, err
	}
	if m.passphrase != "" {
		identity, err := agefile.WithPassphrase(m.passphrase)
		if err != nil {
			return nil, err
		}
		identities = append(identities, identity)
	}
	if len(identities) == 0 {
		return nil, fault.Known(errors.New("no identities, identity_files or passphrase are set, so no file can be opened; set one of them"),
			fault.NoIdentity{})
	}
	return agefile.Open(ctx, file, identities)
}

// Encrypt seals plain for the recipients or, if there are none, with the passphrase.
func (m *method) Encrypt(ctx context.Context, _ driver.Keys, plain []byte) ([]byte, error) {
	if len(m.recipients) > 0 {
		return agefile.Seal(ctx, plain, m.recipients...)
	}
	recipient, err := age.NewScryptRecipient(m.passphrase)
	if err != nil {
		return nil, errors.New("no recipients or passphrase are set, so no file can be encrypted; set one of them")
	}
	return agefile.Seal(ctx, plain, recipient)
}

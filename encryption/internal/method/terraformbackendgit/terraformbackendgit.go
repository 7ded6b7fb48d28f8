// Package terraformbackendgit opens files that terraform-backend-git encrypted in its legacy AES
// mode. It seals no files, because the format is weak.
//
// A file consists of a 12-byte nonce, the ciphertext of AES-256-GCM and a 16-byte tag, as in
// crypt/aes.go of https://github.com/plumber-cd/terraform-backend-git. The key is the MD5 sum of
// the passphrase, written as 32 hexadecimal digits.
package terraformbackendgit

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/md5" //nolint:gosec // the format requires MD5
	"encoding/hex"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
)

const (
	nonceSize = 12
	tagSize   = 16
)

// Block returns the terraform_backend_git method.
func Block() driver.Block[driver.Method] {
	return driver.Block[driver.Method]{
		Table: attr.Table{
			Name:    "terraform_backend_git",
			Example: []string{"passphrase = var.passphrase"},
			Doc: "The legacy AES mode of [terraform-backend-git](https://github.com/plumber-cd/terraform-backend-git). It is weak, so each " +
				"read warns. It recognizes every file that is not text, so put it last.",
			Attrs: []attr.Attr{
				{
					Name: "passphrase", Type: cty.String, Required: true, Form: attr.Passphrase, Secrecy: attr.LocalSecret,
					Env:      []string{"TF_BACKEND_HTTP_ENCRYPTION_PASSPHRASE"},
					Harmless: "It is used here and never sent.",
					Doc:      "The passphrase of terraform-backend-git. White space counts.",
				},
			},
		},
		Build:     build,
		OwnFormat: recognizes,
		Vague:     true,
	}
}

type method struct{ key []byte }

var _ driver.Warner = (*method)(nil)

func build(v attr.Values) (driver.Method, error) {
	passphrase := v.String("passphrase")
	if passphrase == "" {
		return nil, v.Errorf("passphrase", "the passphrase is empty; check whether a variable is empty")
	}
	sum := md5.Sum([]byte(passphrase)) //nolint:gosec // the format requires MD5
	return &method{key: hex.AppendEncode(nil, sum[:])}, nil
}

// recognizes reports whether file may be encrypted in this mode. Such a file looks like random
// bytes, so recognizes only requires that file is long enough and is not text.
func recognizes(file []byte) bool {
	return len(file) >= nonceSize+tagSize && !utf8.Valid(file)
}

// Decrypt decrypts file in place.
func (m *method) Decrypt(_ context.Context, _ driver.Keys, file []byte) ([]byte, error) {
	if len(file) < nonceSize+tagSize {
		return nil, fmt.Errorf("the file has only %d bytes, so it is truncated, or in another format", len(file))
	}
	if utf8.Valid(file) {
		return nil, errors.New("the file is text, so terraform-backend-git's AES mode did not write it; select another method")
	}
	block, err := aes.NewCipher(m.key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	nonce, sealed := file[:nonceSize], file[nonceSize:]
	plain, err := gcm.Open(sealed[:0], nonce, sealed, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: authentication failed: the passphrase is wrong, or the file was changed or is in another "+
			"format", driver.ErrNoKey)
	}
	return plain, nil
}

// Warning returns a warning that says how to stop using this mode.
func (m *method) Warning() driver.Warning {
	return driver.Warning{Title: "Weak encryption", Text: "The AES mode of terraform-backend-git derives its key from the " +
		"passphrase with a single unsalted MD5 sum, so anyone with the file can guess passphrases quickly. Move the state to " +
		"OpenTofu's encryption, or to the sops mode of terraform-backend-git (TF_BACKEND_HTTP_ENCRYPTION_PROVIDER=sops). See the " +
		"guide \"Leaving terraform-backend-git's daemon\"."}
}

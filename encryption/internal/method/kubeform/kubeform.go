// Package kubeform opens and seals the states that Kubeform kept in the status of its modules.
//
// Such a state is compressed with gzip, sealed in a NaCl secretbox behind its 24-byte nonce, and
// encoded in basE91, as in kubeform.dev/kfc (controllers/utils.go) at fd54c99e.
package kubeform

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"golang.org/x/crypto/nacl/secretbox"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
)

const (
	keySize   = 32
	nonceSize = 24
)

// Block returns the kubeform method.
func Block() driver.Block[driver.Method] {
	return driver.Block[driver.Method]{
		Table: attr.Table{
			Name:    "kubeform",
			Example: []string{"key = var.kubeform_key"},
			Doc:     "The encryption of [Kubeform](https://kubeform.com), for the text in `status.state` of its module objects.",
			Attrs: []attr.Attr{
				{
					Name: "key", Type: cty.String, Required: true, Secrecy: attr.LocalSecret, Check: attr.Text(checkKey),
					Doc: "The `--secret-key` of the operator: the base64 of 32 bytes. If that began with `/`, or was empty, Kubeform " +
						"took a random key instead and kept it nowhere: what it encrypted then cannot be opened.",
				},
			},
		},
		Build:     build,
		OwnFormat: recognizes,
		Vague:     true,
	}
}

type method struct{ key [keySize]byte }

var _ driver.Encrypter = (*method)(nil)

func build(v attr.Values) (driver.Method, error) {
	key, err := parseKey(v.String("key"))
	return &method{key}, err
}

func checkKey(text string) error { _, err := parseKey(text); return err }

func parseKey(text string) (key [keySize]byte, err error) {
	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	switch {
	case err != nil:
		return key, errors.New("this is not standard base64 with padding; use base64encode(…) for a key of 32 characters")
	case len(decoded) != keySize:
		return key, fmt.Errorf("the key has %d bytes, but a Kubeform key has %d; %s", len(decoded), keySize, instead(text))
	}
	return [keySize]byte(decoded), nil
}

// instead returns advice for a text that is not the base64 of a key.
func instead(text string) string {
	_, notHex := hex.DecodeString(text)
	switch {
	case len(text) == keySize:
		return "if this text is the key itself, use base64encode(…)"
	case len(text) == 2*keySize && notHex == nil:
		return "convert this hexadecimal key to base64 with xxd -r -p | base64"
	}
	return "copy the whole value of the operator's --secret-key"
}

// recognizes reports whether file consists of basE91 characters and white space. It rejects compact
// JSON and simple manifests, which also consist of these characters.
func recognizes(file []byte) bool {
	for _, manifest := range []string{"apiVersion:", "kind:"} {
		if bytes.HasPrefix(bytes.TrimSpace(file), []byte(manifest)) {
			return false
		}
	}
	values := digits()
	blank := true
	for _, c := range file {
		if values[c] == outside {
			return false
		}
		blank = blank && values[c] == space
	}
	return !blank && !json.Valid(file)
}

// Decrypt decodes, decrypts and decompresses file.
func (m *method) Decrypt(_ context.Context, _ driver.Keys, file []byte) ([]byte, error) {
	message, err := decode(file)
	if err != nil {
		return nil, fmt.Errorf("base91: %w", err)
	}
	if len(message) < nonceSize+secretbox.Overhead {
		return nil, fmt.Errorf("secretbox: the message has only %d bytes, so it is truncated, or not from Kubeform", len(message))
	}
	packed, ok := secretbox.Open(nil, message[nonceSize:], (*[nonceSize]byte)(message), &m.key)
	if !ok {
		return nil, fmt.Errorf("%w: secretbox: authentication failed: the text was encrypted with another key, or it was changed or "+
			"truncated", driver.ErrNoKey)
	}
	plain, err := unzip(packed)
	if err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	return plain, nil
}

func unzip(packed []byte) ([]byte, error) {
	if _, err := gzip.NewReader(bytes.NewReader(packed)); err != nil {
		return nil, errors.New("the decrypted data is not compressed with gzip")
	}
	plain, err := meter.Unpack(packed, math.MaxInt64, gzip.NewReader)
	switch {
	case errors.Is(err, meter.ErrExpands):
		return nil, err
	case err != nil:
		return nil, errors.New("the decrypted data is damaged")
	}
	return plain, nil
}

// Encrypt seals plain with a random nonce.
func (m *method) Encrypt(_ context.Context, _ driver.Keys, plain []byte) ([]byte, error) {
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if _, err := writer.Write(plain); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	var nonce [nonceSize]byte
	_, _ = rand.Read(nonce[:]) // never fails
	return encode(secretbox.Seal(nonce[:], packed.Bytes(), &nonce, &m.key)), nil
}

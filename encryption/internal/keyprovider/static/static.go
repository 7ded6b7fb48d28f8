// Package static uses a key from the settings, without derivation.
//
// Its metadata is the same as in the key provider of the same name in OpenTofu's source:
// opentofu/internal/encryption/keyprovider/static.
package static

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
)

const maxKeyLength = 1024 // bytes; the longest key of any cipher here is 32

// Block returns the static key provider.
func Block() driver.Block[driver.KeyProvider] {
	return driver.Block[driver.KeyProvider]{Build: build, Table: attr.Table{
		Name:    "static",
		Example: []string{"key = var.key"},
		Doc:     "Uses the given key as it is. Exactly one of `key`, `key_base64` and `key_file` is required.",
		Attrs: []attr.Attr{
			{Name: "key", Type: cty.String, Required: true, Excludes: []string{"key_base64", "key_file"}, Secrecy: attr.LocalSecret,
				Check: attr.Text(checkHex), Doc: "The key, in hexadecimal."},
			{Name: "key_base64", Type: cty.String, Excludes: []string{"key_file"}, Secrecy: attr.LocalSecret, Check: attr.Text(checkBase64),
				Doc: "The key, in standard base64."},
			{Name: "key_file", Type: cty.String, Secrecy: attr.NamesLocalSecret, Doc: "The path of a file that holds the bytes of " +
				"the key and nothing else. It is read when the key is needed."},
		},
	}}
}

type provider struct {
	key  []byte
	file string // the file that contains the key; used if key is nil
}

var (
	_ driver.KeyMaker   = (*provider)(nil)
	_ driver.Recognizer = (*provider)(nil)
	_ driver.Deriver    = (*provider)(nil)
)

// metadata is the document that OpenTofu's static key provider stores. It contains a mark, and no
// part of the key.
type metadata struct {
	Magic string `json:"magic"`
}

const magic = "Hello world!"

func build(v attr.Values) (driver.KeyProvider, error) {
	p := provider{file: v.String("key_file")}
	switch { // checkHex and checkBase64 accepted the texts
	case v.String("key") != "":
		p.key, _ = hex.DecodeString(v.String("key"))
	case v.String("key_base64") != "":
		p.key, _ = base64.StdEncoding.DecodeString(v.String("key_base64"))
	default:
		return &p, nil
	}
	if err := checkLength(p.key); err != nil {
		return nil, v.Errorf("", "%w", err)
	}
	return &p, nil
}

// checkHex returns an error for a text that is not hexadecimal. It leaves out the decoder's errors,
// which repeat a character of the key.
func checkHex(text string) error {
	_, err := hex.DecodeString(text)
	odd := recognize.Text(text, recognize.Value).Said("")
	switch {
	case err == nil:
		return nil
	case odd != "":
		return fmt.Errorf("the value %w", fault.Odd(odd))
	case allHex.MatchString(text):
		return errors.New("the number of hexadecimal digits is odd, but each byte has two digits; copy the whole key")
	case strings.Contains(text, " "):
		return errors.New("this is not hexadecimal; use key_provider \"pbkdf2\" for a passphrase")
	}
	return errors.New("this is not hexadecimal; write two hexadecimal digits for each byte, without other characters. For a key in " +
		"base64, use key_base64. For a passphrase, use key_provider \"pbkdf2\"")
}

func checkBase64(text string) error {
	_, err := base64.StdEncoding.DecodeString(text)
	_, notForURLs := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	switch {
	case hexadecimal.MatchString(text):
		return errors.New("this is hexadecimal, not base64; use the argument key")
	case err == nil:
		return nil
	case allHex.MatchString(strings.TrimPrefix(strings.NewReplacer(":", "", " ", "").Replace(text), "0x")):
		return errors.New("this is hexadecimal, not base64; use the argument key, and remove 0x, colons and spaces")
	case notForURLs == nil && strings.ContainsAny(text, "-_"):
		return errors.New("this is base64 for URLs; replace - with + and _ with /, and add = at the end")
	}
	return errors.New("this is not standard base64; use the argument key for a key in hexadecimal. For a passphrase, use " +
		"key_provider \"pbkdf2\"")
}

var allHex = lazyregexp.New(`^[0-9A-Fa-f]+$`)

// hexadecimal matches a key in hexadecimal digits. Such a key is valid base64, too. For a random
// 16-byte key, however, the probability that its base64 consists of these digits alone is at most
// 2^-64.
var hexadecimal = lazyregexp.New(`^[0-9a-f]{32,}$`)

func checkLength(key []byte) error {
	if len(key) == 0 {
		return errors.New("the key is empty; check whether a variable or a file is empty")
	}
	if len(key) > maxKeyLength {
		return fmt.Errorf("the key has %d bytes, but at most %d are allowed", len(key), maxKeyLength)
	}
	return nil
}

// Key returns the key. It needs no metadata, but returns an error for metadata of another kind.
func (p *provider) Key(_ context.Context, _ driver.Keys, stored json.RawMessage) ([]byte, error) {
	if stored != nil && !p.Recognizes(stored) {
		return nil, errors.New("the metadata in the file does not come from a static key provider; restore an intact copy")
	}
	return p.load()
}

// NewKey returns the key, and the mark to store.
func (p *provider) NewKey(context.Context, driver.Keys) ([]byte, json.RawMessage, error) {
	key, err := p.load()
	if err != nil {
		return nil, nil, err
	}
	stored, err := json.Marshal(metadata{magic})
	return key, stored, err
}

// Recognizes reports whether stored contains the mark.
func (p *provider) Recognizes(stored json.RawMessage) bool {
	var m metadata
	return json.Unmarshal(stored, &m) == nil && m.Magic == magic
}

// Stored returns nil, because the key is always the same. It returns an error if there is a salt or
// wrapped metadata, or if the key has fewer than 16 bytes.
func (p *provider) Stored(salt []byte, wrapped json.RawMessage) (json.RawMessage, error) {
	if salt != nil || wrapped != nil {
		return nil, errors.New("a static key must have neither salt nor wrapped_key; to tell keys apart, set the argument info")
	}
	key, err := p.load()
	if err == nil && len(key) < 16 {
		err = fmt.Errorf("the key has %d bytes, but derived keys need a key of at least 16", len(key))
	}
	return nil, err
}

func (p *provider) load() ([]byte, error) {
	if p.file == "" {
		return bytes.Clone(p.key), nil
	}
	key, err := keyfile.Read(p.file)
	if err != nil {
		return nil, fmt.Errorf("key_file: %w", err)
	}
	if isTextLine(key) {
		return nil, errors.New("key_file: the file contains a line of text, not the bytes of a key; decode the file, or use key or " +
			"key_base64")
	}
	if err := checkLength(key); err != nil {
		return nil, err
	}
	return key, nil
}

// isTextLine reports whether b is printable text that ends with a line break, such as an encoded
// key. The bytes of a real key look like this about once in a billion times.
func isTextLine(b []byte) bool {
	line, ok := bytes.CutSuffix(b, []byte("\n"))
	for _, c := range bytes.TrimSuffix(line, []byte("\r")) {
		ok = ok && c >= ' ' && c <= '~'
	}
	return ok
}

package source

import (
	"encoding/base64"
	"fmt"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
)

// CustomerKeyCheck returns the check for an attribute that holds a customer-supplied encryption key.
func CustomerKeyCheck() attr.Check {
	return attr.Is(func(text string) bool { return CustomerKey(text) != nil }, "this is not a key of 32 bytes in base64 (44 characters); "+
		"copy the whole key")
}

// CustomerKey decodes a base64 AES-256 key. It returns nil if text is not such a key.
func CustomerKey(text string) []byte {
	const size = 32 // bytes
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) != size {
		return nil
	}
	return key
}

// CheckWord returns an error if word contains control characters, which no server accepts. word is a part of
// a request, such as a token or a username. The error contains the setting name in what, but not the word.
// Secrets in settings are checked by their form; see [attr.Lines].
func CheckWord(what, word string) error {
	if problem := recognize.Text(word, recognize.Word).Said(""); problem != "" {
		return fmt.Errorf("%s %s", what, problem)
	}
	return nil
}

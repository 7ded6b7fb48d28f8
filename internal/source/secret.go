package source

import (
	"encoding/base64"
	"fmt"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
)

// CustomerKeyCheck is that of a key with which a store encrypts for whoever brings it.
func CustomerKeyCheck() attr.Check {
	return attr.Is(func(text string) bool { return CustomerKey(text) != nil }, "32 bytes in base64 are required, which are 44 characters")
}

// CustomerKey returns the key for AES-256 that text holds, nil for none.
func CustomerKey(text string) []byte {
	const size = 32 // bytes
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) != size {
		return nil
	}
	return key
}

// CheckWord is the error of what is one word in a request, such as a token or a
// username, and has control characters in it, which no server could mean. What is the
// name of the setting. The word is not in the error. [attr.Lines] is about the
// secrets of settings.
func CheckWord(what, word string) error {
	if problem := recognize.Text(word, recognize.Word).Said(""); problem != "" {
		return fmt.Errorf("%s %s", what, problem)
	}
	return nil
}

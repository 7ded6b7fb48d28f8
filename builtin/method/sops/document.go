package sops

import (
	"fmt"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
)

// Limits for a file, which are checked before any key is used.
const (
	maxGroups  = 64
	maxKeys    = 128      // the maximum number of keys in all groups together
	maxWrapped = 32 << 10 // the maximum size of an encrypted data key, in bytes; several thousand for many PGP keys
	maxName    = 16 << 10 // the maximum size of a key's address, role and encryption context, in bytes
	keyLength  = 32       // the length of a data key, in bytes
)

// document is a parsed file. It is decrypted in place.
type document struct {
	state     object // everything except the metadata
	meta      metadata
	groups    [][]masterKey
	threshold int // the number of key groups required
	selection *selection
	binary    bool // whether sops encrypted the whole file as a single value
}

// load parses a file and does all checks that need no key.
func load(file []byte, partial bool, cost *meter.Meter) (*document, error) {
	all, err := read(file, cost)
	if err != nil {
		return nil, err
	}
	doc := &document{}
	if err := doc.extract(all, cost); err != nil {
		return nil, err
	}
	if err := walk(doc.state, nil, checkNames); err != nil {
		return nil, err
	}
	if !partial {
		if err := walk(doc.state, nil, checkSealed); err != nil {
			return nil, err
		}
	}
	if isJSON(file) && len(doc.state) == 1 && doc.state[0].name == "data" {
		_, doc.binary = doc.state[0].value.(string)
	}
	doc.selection, err = doc.meta.selects(partial, cost)
	return doc, err
}

// checkNames returns an error if two names of an object differ only in case, and at least one of them has an
// empty value. The MAC does not protect an empty value, and a reader that ignores case could mistake it for
// the other. Only names that are part of the state format are checked; tag names, for example, are not.
func checkNames(value any, path []string) error {
	branch, _ := value.(object)
	if len(path) > 2 {
		return nil
	}
	seen := map[string]bool{} // whether the value has content, by lowercase name
	for _, item := range branch {
		folded, content := strings.ToLower(strings.ToUpper(item.name)), hasContent(item.value)
		if other, twice := seen[folded]; twice && !(other && content) {
			return fmt.Errorf("the file has %s twice, in different letter cases and once empty: "+changed, at(append(path, item.name)))
		}
		seen[folded] = content
	}
	return nil
}

// hasContent reports whether a value contains anything that the MAC protects.
func hasContent(value any) bool {
	switch v := value.(type) {
	case object:
		return slices.ContainsFunc(v, func(item member) bool { return hasContent(item.value) })
	case []any:
		return slices.ContainsFunc(v, hasContent)
	case string:
		return v != ""
	}
	return value != nil
}

// checkSealed returns an error for a value that is not encrypted. It accepts lists, objects, and the values
// that sops never encrypts: empty strings and null. The MAC is a hash of all values in sequence, and does not
// protect their names.
func checkSealed(value any, path []string) error {
	switch v := value.(type) {
	case nil, object, []any:
		return nil
	case string:
		if v == "" || strings.HasPrefix(v, "ENC[") {
			return nil
		}
	}
	return fmt.Errorf("the value at %s is not encrypted, so anyone could have written it; if sops left it unencrypted on purpose, "+
		"set allow_unencrypted_values = true", at(path))
}

// at formats a location in the file for a message.
func at(path []string) string { return quote(strings.Join(path, ".")) }

const maxText = 200 // the maximum size in bytes of text from the file in a message

func quote(text string) string { return outside.Quoted(text, maxText) }

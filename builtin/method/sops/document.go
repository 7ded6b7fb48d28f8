package sops

import (
	"fmt"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
)

// These limits apply to a file. They are checked before any key is used.
const (
	maxGroups  = 64
	maxKeys    = 128      // keys in all groups together
	maxWrapped = 32 << 10 // bytes of an encrypted data key; a data key for many PGP keys takes several thousand
	maxName    = 16 << 10 // bytes of a key's address, role and encryption context
	keyLength  = 32       // bytes of a data key
)

// document is a file that was parsed, and later decrypted in place.
type document struct {
	state     object // everything but the metadata
	meta      metadata
	groups    [][]masterKey
	threshold int // the number of key groups that are needed
	selection *selection
	binary    bool // whether sops encrypted the whole file as one value
}

// load parses a file and checks everything that can be checked without a key.
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

// checkNames returns an error for two names of an object that differ only in case, if one of them has an empty
// value: the MAC does not cover it, and a reader that ignores case could take it for the other.
// It checks the names of the state format only, and not, for example, names of tags.
func checkNames(value any, path []string) error {
	branch, _ := value.(object)
	if len(path) > 2 {
		return nil
	}
	seen := map[string]bool{} // whether the value has content, by the folded name
	for _, item := range branch {
		folded, content := strings.ToLower(strings.ToUpper(item.name)), hasContent(item.value)
		if other, twice := seen[folded]; twice && !(other && content) {
			return fmt.Errorf("the file has %s twice, in different cases and once empty: "+changed, at(append(path, item.name)))
		}
		seen[folded] = content
	}
	return nil
}

// hasContent reports whether a value contains anything that the MAC covers.
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

// checkSealed returns an error for a value that is not encrypted, apart from empty texts and null,
// which sops never encrypts, and from lists and objects. The MAC is a hash of all values one
// after another, and does not cover their names.
func checkSealed(value any, path []string) error {
	switch v := value.(type) {
	case nil, object, []any:
		return nil
	case string:
		if v == "" || strings.HasPrefix(v, "ENC[") {
			return nil
		}
	}
	return fmt.Errorf("the value at %s is not encrypted, so anybody could have written it; "+
		"if sops was meant to leave it unencrypted, set allow_unencrypted_values = true", at(path))
}

// at returns a place in the file for a message.
func at(path []string) string { return quote(strings.Join(path, ".")) }

const maxText = 200 // bytes of a text of the file that are shown

func quote(text string) string { return outside.Quoted(text, maxText) }

// Package mark tells the metadata of the key provider age from the metadata of other programs,
// which files store under one kind.
package mark

import (
	"bytes"
	"errors"
)

// ErrNothingStored means that a file has no metadata of a key provider, in contrast to metadata
// with another key.
var ErrNothingStored = errors.New("the file stores nothing of this key provider")

// AgeKey is the member of external_data that holds a key sealed with age. Other programs store
// other members there.
const AgeKey = "statecrypt_age_key"

// IsOfAge reports whether metadata belongs to the key provider age.
func IsOfAge(stored []byte) bool { return bytes.Contains(stored, []byte(`"`+AgeKey+`"`)) }

// Package mark distinguishes metadata of the age key provider from metadata of other programs.
// Files store both as metadata of the kind external.
package mark

import (
	"bytes"
	"errors"
)

// ErrNothingStored means that a file has no metadata of a key provider at all, not that the
// metadata is for another key.
var ErrNothingStored = errors.New("the file has no metadata for this key provider")

// AgeKey is the member of external_data that holds a key sealed with age. Other programs store
// other members there.
const AgeKey = "statecrypt_age_key"

// IsOfAge reports whether metadata belongs to the age key provider.
func IsOfAge(stored []byte) bool { return bytes.Contains(stored, []byte(`"`+AgeKey+`"`)) }

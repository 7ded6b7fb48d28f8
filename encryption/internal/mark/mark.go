// Package mark has what tells metadata of one kind from that of another, where both
// are stored as one kind.
package mark

import (
	"bytes"
	"errors"
)

// ErrNothingStored tells a file that stores nothing of a key provider from one whose key
// does not fit.
var ErrNothingStored = errors.New("the file stores nothing of this key provider")

// AgeKey is the member of external_data that holds a key which is sealed with age, in
// place of what a program stores there.
const AgeKey = "statecrypt_age_key"

// IsOfAge reports whether metadata that names any kind is that of the kind age.
func IsOfAge(stored []byte) bool { return bytes.Contains(stored, []byte(`"`+AgeKey+`"`)) }

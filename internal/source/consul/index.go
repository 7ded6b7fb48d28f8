package consul

import (
	"encoding/json"
	"errors"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
)

// chunk is the size of the parts, in bytes, into which the backend splits a state that does not fit into one
// key.
const chunk = 512 << 10

// index is the value of a large state's key.
type index struct {
	hash   string // MD5 of the uncompressed state, in hexadecimal
	chunks []string
}

// maxIndex is the maximum size of an index, in bytes. Unless configured otherwise, Consul stores values of at
// most 512 KiB.
const maxIndex = 4 << 20

var md5Pattern = lazyregexp.New(`^[0-9a-f]{32}$`)

// readIndex parses the index of a large state. It returns nil if the value is the state itself. Like the
// backend, it recognizes an index by the name current-hash alone.
func readIndex(value []byte) (*index, error) {
	const hash = "current-hash"
	if len(value) > maxIndex {
		return nil, nil
	}
	// This is a map and not a struct, because struct fields would also match names in upper case.
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &members) != nil || members[hash] == nil {
		return nil, nil
	}
	var x index
	if json.Unmarshal(members[hash], &x.hash) != nil || json.Unmarshal(members["chunks"], &x.chunks) != nil ||
		!md5Pattern.MatchString(x.hash) {
		return nil, errors.New("the value is not a state, or a list of its parts, as written by the consul backend; check path")
	}
	return &x, nil
}

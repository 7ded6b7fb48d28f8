package consul

import (
	"encoding/json"
	"errors"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
)

// chunk is the size in bytes of the parts into which the backend splits a state that does not fit into
// one key.
const chunk = 512 << 10

// index is the value of the key of a large state.
type index struct {
	hash   string // MD5 of the state before it was compressed, in hexadecimal digits
	chunks []string
}

// maxIndex is the largest index, in bytes. Consul stores values of at most 512 KiB unless it is
// configured otherwise.
const maxIndex = 4 << 20

var md5Pattern = lazyregexp.New(`^[0-9a-f]{32}$`)

// readIndex parses the index of a large state. It returns nil for a value that is the state itself.
// Like the backend, it recognizes an index by the name current-hash alone.
func readIndex(value []byte) (*index, error) {
	const hash = "current-hash"
	if len(value) > maxIndex {
		return nil, nil
	}
	// This is not a struct, because its fields would match names in capital letters, too.
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &members) != nil || members[hash] == nil {
		return nil, nil
	}
	var x index
	if json.Unmarshal(members[hash], &x.hash) != nil || json.Unmarshal(members["chunks"], &x.chunks) != nil ||
		!md5Pattern.MatchString(x.hash) {
		return nil, errors.New("the value holds neither a state nor a list of its parts as the consul backend writes it; check path")
	}
	return &x, nil
}

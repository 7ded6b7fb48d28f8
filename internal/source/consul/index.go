package consul

import (
	"encoding/json"
	"errors"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
)

// chunk is how much the backend puts into one key when a state does not fit.
const chunk = 512 << 10

// index is the value of the key of a large state.
type index struct {
	hash   string // MD5 of the state before it was compressed, in hexadecimal digits
	chunks []string
}

// maxIndex is in bytes. Consul itself takes values of 512 KiB, unless it is told
// otherwise.
const maxIndex = 4 << 20

var md5Pattern = lazyregexp.New(`^[0-9a-f]{32}$`)

// readIndex returns nil for a value that is the state itself. The backend goes
// by the name alone as well.
func readIndex(value []byte) (*index, error) {
	const hash = "current-hash"
	if len(value) > maxIndex {
		return nil, nil
	}
	// Not a struct: its fields would be matched in capital letters, too.
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

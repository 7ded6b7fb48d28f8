package objects

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// MaxPages limits how many pages of a list are read to find the versions of a state, and MaxVersions how many versions
// are kept in memory. A bucket can keep more, but a hostile server must not occupy the program forever.
const (
	MaxPages    = 1000
	MaxVersions = 500_000
)

// These are errors about the list of versions.
var (
	ErrUnlisted = errors.New("the store cannot list the versions of an object; if it keeps versions, use the store's own tools to list them")
	ErrTooMany  = errors.New("the store lists too many versions; delete old versions, for example with a lifecycle rule")
)

// ByAge orders versions for [slices.SortStableFunc]: the current state first, then the newest.
func ByAge(a, b store.Kept) int {
	switch {
	case a.Status == store.KeptCurrent && b.Status != store.KeptCurrent:
		return -1
	case b.Status == store.KeptCurrent && a.Status != store.KeptCurrent:
		return 1
	}
	return b.Created.Compare(a.Created)
}

// Newest returns the newest of all versions that a store has listed, at most limit, and whether there are more. A
// version without content counts as a deletion, because an empty object is no state. Versions of the same time stay in
// their order.
func (s *State) Newest(ctx context.Context, all []store.Kept, limit int) (kept []store.Kept, more bool, err error) {
	if len(all) == 0 {
		_, version, err := s.Read(ctx)
		if err == nil && version != "" { // some servers ignore that versions are requested
			err = ErrUnlisted
		}
		return nil, false, err
	}
	slices.SortStableFunc(all, ByAge)
	for i := range all {
		if all[i].Size == 0 {
			all[i].Status = store.KeptDeleted
		}
	}
	return all[:min(limit, len(all))], len(all) > limit, nil
}

// Part is a part of a version. A negative length means everything after the offset.
type Part struct{ Offset, Length int64 }

// Range returns the part in the form of the HTTP header Range, or "" for the whole version.
func (p Part) Range() string {
	switch {
	case p.Offset == 0 && p.Length < 0:
		return ""
	case p.Length < 0:
		return fmt.Sprintf("bytes=%d-", p.Offset)
	}
	return fmt.Sprintf("bytes=%d-%d", p.Offset, p.Offset+max(p.Length, 1)-1)
}

// Cut returns the part from a response to a request for [Part.Range]. The response has the whole version if the server
// ignores ranges. An empty version is a deletion, see [State.Newest].
func (p Part) Cut(status int, contentRange string, data []byte) ([]byte, error) {
	switch {
	case len(data) == 0 && (status == http.StatusOK || p.Offset == 0):
		return nil, store.ErrNoVersion
	case status == http.StatusRequestedRangeNotSatisfiable: // the version ends before the offset
		return nil, nil
	case status != http.StatusPartialContent:
		data = data[min(p.Offset, int64(len(data))):]
	case !strings.HasPrefix(contentRange, fmt.Sprintf("bytes %d-", p.Offset)):
		return nil, errors.New("the server sent a part of the version that was not requested; check any proxy and the endpoint")
	}
	if p.Length >= 0 {
		data = data[:min(p.Length, int64(len(data)))]
	}
	return data, nil
}

package objects

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// TestPart tests what is requested of a version, and what is taken from the response.
func TestPart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		part   Part
		header string // the range that is requested
		status int
		sent   string // the range that the server names
		data   string
		want   string
		fails  bool
		none   bool // there is no such version
	}{
		{part: Part{0, -1}, status: 200, data: "0123456789", want: "0123456789"},
		{part: Part{0, -1}, status: 200, none: true},
		{part: Part{0, 4}, header: "bytes=0-3", status: 206, sent: "bytes 0-3/10", data: "0123", want: "0123"},
		{part: Part{0, 4}, header: "bytes=0-3", status: 206, sent: "bytes 0-9/10", data: "0123456789", want: "0123"},
		{part: Part{0, 4}, header: "bytes=0-3", status: 200, data: "0123456789", want: "0123"},
		{part: Part{0, 4}, header: "bytes=0-3", status: 416, none: true},
		{part: Part{0, 4}, header: "bytes=0-3", status: 206, sent: "bytes 1-4/10", data: "1234", fails: true},
		{part: Part{0, 4}, header: "bytes=0-3", status: 206, data: "1234", fails: true},
		{part: Part{8, 4}, header: "bytes=8-11", status: 206, sent: "bytes 8-9/10", data: "89", want: "89"},
		{part: Part{8, 4}, header: "bytes=8-11", status: 206, sent: "bytes 80-83/100", data: "0123", fails: true},
		{part: Part{8, 4}, header: "bytes=8-11", status: 200, data: "0123456789", want: "89"},
		{part: Part{8, 4}, header: "bytes=8-11", status: 200, data: "0123", want: ""},
		{part: Part{8, 4}, header: "bytes=8-11", status: 200, none: true},
		{part: Part{8, 4}, header: "bytes=8-11", status: 416},
		{part: Part{8, -1}, header: "bytes=8-", status: 206, sent: "bytes 8-9/10", data: "89", want: "89"},
		{part: Part{8, 0}, header: "bytes=8-8", status: 206, sent: "bytes 8-8/10", data: "8", want: ""},
	} {
		got, err := c.part.Cut(c.status, c.sent, []byte(c.data))
		if c.part.Range() != c.header || string(got) != c.want || (err != nil) != (c.fails || c.none) ||
			errors.Is(err, store.ErrNoVersion) != c.none {
			t.Errorf("%+v: requested %q, got %q, %v", c, c.part.Range(), got, err)
		}
	}
}

// requests has one object.
type requests struct {
	Requests
	data []byte
	err  error
}

func (r requests) Get(context.Context, string, int64) ([]byte, string, error) {
	if r.data == nil {
		return nil, "", r.err
	}
	return r.data, "v", r.err
}

// TestNewest tests the order of versions, and lists that must be wrong.
func TestNewest(t *testing.T) {
	t.Parallel()
	at := func(id string, second int, size int64, status store.KeptStatus) store.Kept {
		return store.Kept{ID: id, Created: time.Unix(int64(second), 0), Size: size, Status: status}
	}
	all := []store.Kept{at("b", 5, 1, store.KeptOlder), at("c", 5, 0, store.KeptOlder), at("a", 4, 1, store.KeptCurrent),
		at("e", 3, 1, store.KeptUndelete), at("d", 4, 0, store.KeptDeleted)}
	s := &State{}
	for limit := 1; limit < 7; limit++ {
		kept, more, err := s.Newest(t.Context(), slices.Clone(all), limit)
		ids := ""
		for _, v := range kept {
			ids += v.ID
			if (v.Size == 0) != (v.Status == store.KeptDeleted) {
				t.Errorf("%+v", v)
			}
		}
		if want := "abcde"[:min(limit, 5)]; err != nil || ids != want || more != (limit < 5) {
			t.Errorf("%d: got %q, more %t, %v", limit, ids, more, err)
		}
	}
	failed := errors.New("the request failed")
	for name, c := range map[string]struct {
		requests requests
		want     error
	}{
		"no state": {}, "a state": {requests{data: []byte("1")}, ErrUnlisted}, "an empty state": {requests{data: []byte{}}, ErrUnlisted},
		"no answer": {requests{err: failed}, failed},
	} {
		if kept, more, err := (&State{Requests: c.requests}).Newest(t.Context(), nil, 5); !errors.Is(err, c.want) || kept != nil || more {
			t.Errorf("%s: got %v, %t, %v", name, kept, more, err)
		}
	}
}

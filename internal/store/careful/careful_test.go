package careful

import (
	"context"
	"errors"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// flaky is a state whose answers get lost.
type flaky struct {
	store.State

	there []byte
	lost  int // writes that are done, and whose answers are lost
	dead  int // calls after that which nobody answers
}

var errUnanswered = &store.UnansweredError{Err: errors.New("no answer")}

func (f *flaky) Read(context.Context) ([]byte, store.Version, error) {
	if f.dead--; f.dead >= 0 {
		return nil, "", errUnanswered
	}
	return f.there, store.Digest(f.there), nil
}

func (f *flaky) Write(_ context.Context, data []byte, read store.Version) (store.Version, error) {
	if f.dead--; f.dead >= 0 {
		return "", errUnanswered
	}
	if store.Digest(f.there) != read {
		return "", store.ErrChanged
	}
	f.there = data
	if f.lost--; f.lost >= 0 {
		f.dead = 1 // nor is the look at it answered
		return "", errUnanswered
	}
	return store.Digest(data), nil
}

// TestSentBefore: what this run has sent, and nobody could look at, is not what someone else
// has written.
//
// Promise: States in stores
func TestSentBefore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		between func(f *flaky)
		changed bool
	}{
		"there":                        {between: func(*flaky) {}},
		"and another, that is not":     {between: func(f *flaky) { f.dead = 3 }},
		"and another, that is, too":    {between: func(f *flaky) { f.lost = 1 }},
		"written over by others":       {between: func(f *flaky) { f.there = []byte("x") }, changed: true},
		"others', and one is not":      {between: func(f *flaky) { f.there, f.dead = []byte("x"), 3 }, changed: true},
		"not there, and nobody's, too": {between: func(f *flaky) { f.there = []byte("0") }},
	} {
		f := &flaky{there: []byte("0"), lost: 1}
		s := New(f, store.Properties{})
		read := store.Digest(f.there)
		if _, err := s.Write(t.Context(), []byte("1"), read); !isAmbiguous(err) {
			t.Fatalf("%s: %v", name, err)
		}
		c.between(f)
		f.lost = max(f.lost, 0)
		_, err := s.Write(t.Context(), []byte("2"), read)
		if isAmbiguous(err) {
			_, err = s.Write(t.Context(), []byte("3"), read)
		}
		if errors.Is(err, store.ErrChanged) != c.changed || !c.changed && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// deaf is a store that says yes to a write and a removal, and keeps what it has.
type deaf struct {
	store.State

	there  []byte
	unread error
}

func (d deaf) Read(context.Context) ([]byte, store.Version, error) { return d.there, "1", d.unread }

func (deaf) Write(context.Context, []byte, store.Version) (store.Version, error) { return "2", nil }

func (deaf) Remove(context.Context, store.Version) error { return nil }

// TestDeaf: a store that says yes and does nothing is found out, unless it looks at that itself.
//
// Promise: States in stores
func TestDeaf(t *testing.T) {
	t.Parallel()
	own := errors.New("the words of the store")
	for name, c := range map[string]struct {
		known        store.Properties
		unread       error
		write, erase error
	}{
		"another state":           {write: store.ErrUnkept, erase: store.ErrUnremoved},
		"in the store's words":    {known: store.Properties{Unkept: own}, write: own, erase: store.ErrUnremoved},
		"nobody can look":         {unread: errUnanswered, write: store.ErrUnseen, erase: errUnanswered},
		"the store looks at that": {known: store.Properties{Verifies: true}},
	} {
		s := New(deaf{there: []byte("old"), unread: c.unread}, c.known)
		if _, err := s.Write(t.Context(), []byte("new"), "1"); !errors.Is(err, c.write) {
			t.Errorf("%s, a write: got %v", name, err)
		}
		if err := s.Remove(t.Context(), "1"); !errors.Is(err, c.erase) {
			t.Errorf("%s, a removal: got %v", name, err)
		}
	}
}

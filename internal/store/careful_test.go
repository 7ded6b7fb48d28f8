package store

import (
	"context"
	"errors"
	"testing"
)

// flaky is a state whose answers get lost.
type flaky struct {
	State

	there []byte
	lost  int // writes that are done, and whose answers are lost
	dead  int // calls after that which nobody answers
}

var errUnanswered = &UnansweredError{errors.New("no answer")}

func (*flaky) Unkept() error { return ErrUnkept }

func (f *flaky) Read(context.Context) ([]byte, Version, error) {
	if f.dead--; f.dead >= 0 {
		return nil, "", errUnanswered
	}
	return f.there, Digest(f.there), nil
}

func (f *flaky) Write(_ context.Context, data []byte, read Version) (Version, error) {
	if f.dead--; f.dead >= 0 {
		return "", errUnanswered
	}
	if Digest(f.there) != read {
		return "", ErrChanged
	}
	f.there = data
	if f.lost--; f.lost >= 0 {
		f.dead = 1 // nor is the look at it answered
		return "", errUnanswered
	}
	return Digest(data), nil
}

// TestSentBefore: what this run has sent, and nobody could look at, is not what somebody else
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
		s := Careful(f)
		read := Digest(f.there)
		if _, err := s.Write(t.Context(), []byte("1"), read); !isAmbiguous(err) {
			t.Fatalf("%s: %v", name, err)
		}
		c.between(f)
		f.lost = max(f.lost, 0)
		_, err := s.Write(t.Context(), []byte("2"), read)
		if isAmbiguous(err) {
			_, err = s.Write(t.Context(), []byte("3"), read)
		}
		if errors.Is(err, ErrChanged) != c.changed || !c.changed && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

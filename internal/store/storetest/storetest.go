// Package storetest is the test that every store must pass.
package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/careful"
)

// Harness lets [Run] use a store.
type Harness struct {
	Place      Places
	Properties store.Properties // of the store

	Huge     bool     // a state of 100 MiB is kept here
	Slow     bool     // each call starts programs: there are fewer rounds
	Again    bool     // the same store by another way: in "make soak", all of it is tried there, too
	Nameless []string // names that are refused
	Renames  bool     // people name a lock by another ID than the one of its holder

	// Servers that are not as they should be, nil for those that cannot be so.
	RightRefused Places // a condition that is met is refused in the usual form
	FirstSpecial Places // the first object in an empty place becomes special, such as one that cannot be removed
}

// Places makes a new place without a state of that name.
type Places func(t *testing.T, name string) Place

// Place is where one state is.
type Place struct {
	// Open returns the state as another program would.
	Open func(t *testing.T) store.State

	// Put writes what somebody else has written who knows of no lock.
	Put func(t *testing.T, data []byte)

	// Lose takes the lock away from whoever has it.
	Lose func(t *testing.T)

	// Lie has the server say yes, from now on, to one kind of request, and do nothing. It is nil where
	// there is no server.
	Lie func(t *testing.T, what Lie)

	// Weaken has the server call its ETags weak, as a proxy does that compresses answers. It is nil
	// where there are none.
	Weaken func(t *testing.T)

	Secrets []string // which appear in no error
}

// Lie is a request that a server calls done, and has not done.
type Lie string

// A server may lie about each of these.
const (
	LieOfLock   Lie = "lock"
	LieOfWrite  Lie = "write"
	LieOfRemove Lie = "remove"
)

// State is what is stored: as an envelope, with a label.
func State(serial int) []byte {
	return fmt.Appendf(nil, `{"serial":%d,"lineage":"l","meta":{},"encrypted_data":"%s","encryption_version":"v0"}`, serial,
		strings.Repeat("x", 100+serial))
}

// Lock is one of a CLI.
func Lock(id string) store.Lock {
	return store.Lock{ID: id, Operation: "OperationTypeApply", Who: id + "@host", Version: "1.12.6", Created: "2026-11-27T00:00:00Z"}
}

// Run tests one kind, as wrap uses it: see [careful.New].
func Run(t *testing.T, h Harness) {
	place := h.Place
	h.Place = func(t *testing.T, name string) Place {
		t.Helper()
		p := place(t, name)
		open := p.Open
		p.Open = func(t *testing.T) store.State { t.Helper(); return careful.New(open(t), h.Properties) }
		return p
	}
	again := h.Again && testkit.Rounds(10) < 10
	t.Run("states", func(t *testing.T) { testStates(t, h) })
	t.Run("locks", func(t *testing.T) { testLocks(t, h) })
	if again {
		return
	}
	t.Run("changed", func(t *testing.T) { testChanged(t, h) })
	t.Run("one winner", func(t *testing.T) { testOneWinner(t, h) })
	t.Run("lost", func(t *testing.T) { testLost(t, h) })
	for name, place := range map[string]Places{"a right condition that is refused": h.RightRefused,
		"an empty place whose first object becomes special": h.FirstSpecial} {
		if place != nil {
			t.Run(name, func(t *testing.T) { testLife(t, h, place(t, "state")) })
		}
	}
	t.Run("lies", func(t *testing.T) { testLies(t, h) })
	t.Run("weak ETags", func(t *testing.T) { testWeak(t, h) })
	for _, name := range []string{"with spaces", "a.b..c", "größe", "x'y\"z", "-x", ".hidden"} {
		if slices.Contains(h.Nameless, name) {
			continue
		}
		t.Run("name "+name, func(t *testing.T) {
			s := h.Place(t, name).Open(t)
			write(t, s, State(1), "")
			check(t, s, State(1))
		})
	}
	if h.Huge && !testing.Short() {
		t.Run("100 MiB", func(t *testing.T) { testHuge(t, h) })
	}
}

// write writes under a lock.
func write(t *testing.T, s store.State, data []byte, read store.Version) store.Version {
	t.Helper()
	must(t, s.Lock(t.Context(), Lock("writer")))
	next, err := s.Write(t.Context(), data, read)
	must(t, err)
	must(t, s.Unlock(t.Context(), "writer"))
	return next
}

// check compares what is there, and returns its version.
func check(t *testing.T, s store.State, want []byte) store.Version {
	t.Helper()
	got, v, err := s.Read(t.Context())
	if err != nil || !bytes.Equal(got, want) || (v == "") != (len(want) == 0) {
		t.Fatalf("got %.200q, version %q, %v; want %.200q", got, v, err, want)
	}
	return v
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused checks an error.
func (p Place) refused(t *testing.T, err error, what string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: there is no error", what)
		return
	}
	for _, secret := range p.Secrets {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error has a secret in it: %v", what, err)
		}
	}
}

func testStates(t *testing.T, h Harness) {
	p := h.Place(t, "state")
	s, other := p.Open(t), p.Open(t)
	check(t, s, nil)
	first := write(t, s, State(1), "")
	if there := check(t, other, State(1)); there != first {
		t.Errorf("the version is %q for who has written it, and %q for others", first, there)
	}
	second := write(t, other, State(20), first)
	if again := write(t, s, State(3), second); again == second || again == first {
		t.Errorf("the versions of other states are %q, %q and %q", first, second, again)
	}
	check(t, other, State(3))
	must(t, s.Lock(t.Context(), Lock("remover")))
	must(t, s.Remove(t.Context(), check(t, s, State(3))))
	must(t, s.Unlock(t.Context(), "remover"))
	check(t, other, nil)
	write(t, s, State(4), "")
}

// testLife has three programs, one after the other, look at a state under the lock, and two of them write it twice.
func testLife(t *testing.T, h Harness, p Place) {
	t.Helper()
	var want []byte
	var older store.Version
	for program := range 3 {
		s := careful.New(p.Open(t), h.Properties)
		if prover, ok := store.As[store.Prover](s); ok {
			must(t, prover.Ready(t.Context()))
		}
		must(t, s.Lock(t.Context(), Lock("1")))
		version := check(t, s, want)
		for serial := range 2 {
			if program > 0 {
				want = State(2*program + serial)
				older = version
				next, err := s.Write(t.Context(), want, version)
				must(t, err)
				version = next
			}
		}
		must(t, s.Unlock(t.Context(), "1"))
		if holder, err := s.Holder(t.Context()); !errors.Is(err, store.ErrHolderUnknown) && (err != nil || holder != nil) {
			t.Errorf("given back, the holder is %v, %v", holder, err)
		}
	}
	s := p.Open(t)
	if _, err := s.Write(t.Context(), State(10), older); !errors.Is(err, store.ErrChanged) {
		t.Errorf("over another one than was read: %v", err)
	}
	check(t, s, want)
}

func testChanged(t *testing.T, h Harness) {
	p := h.Place(t, "state")
	s := p.Open(t)
	older := write(t, s, State(1), "")
	p.Put(t, State(2))
	_, err := s.Write(t.Context(), State(3), older)
	if !errors.Is(err, store.ErrChanged) {
		t.Errorf("without a lock: %v", err)
	}
	p.refused(t, err, "without a lock")
	read := check(t, s, State(2))
	rotated := bytes.ReplaceAll(State(2), []byte("xxxx"), []byte("yyyy"))
	p.Put(t, rotated)
	if _, err := s.Write(t.Context(), State(3), read); !errors.Is(err, store.ErrChanged) {
		t.Errorf("another key, with the same serial: %v", err)
	}
	check(t, s, rotated)
	p.Put(t, State(2))
	must(t, s.Lock(t.Context(), Lock("1")))
	for what, read := range map[string]store.Version{"an older one": older, "none": ""} {
		if _, err := s.Write(t.Context(), State(3), read); !errors.Is(err, store.ErrChanged) {
			t.Errorf("with a lock, %s: %v", what, err)
		}
		if err := s.Remove(t.Context(), read); !errors.Is(err, store.ErrChanged) {
			t.Errorf("removed with a lock, %s: %v", what, err)
		}
	}
	must(t, s.Unlock(t.Context(), "1"))
	check(t, s, State(2))
}

func testLocks(t *testing.T, h Harness) {
	p := h.Place(t, "state")
	s, other := p.Open(t), p.Open(t)
	read := write(t, s, State(1), "")
	must(t, s.Lock(t.Context(), Lock("1")))
	must(t, s.Lock(t.Context(), Lock("1"))) // an answer was lost
	for what, err := range map[string]error{"another": other.Lock(t.Context(), Lock("2")), "a second": s.Lock(t.Context(), Lock("2"))} {
		p.refused(t, err, what)
		if held, ok := errors.AsType[*store.HeldError](err); !ok || held.By == nil || held.By.Who != "1@host" || (held.By.ID == "1") == h.Renames {
			t.Errorf("%s: %v", what, err)
		}
	}
	if holder, err := other.Holder(t.Context()); !errors.Is(err, store.ErrHolderUnknown) && (err != nil || (holder.ID == "1") == h.Renames) {
		t.Errorf("the holder is %v, %v", holder, err)
	}
	_, err := other.Write(t.Context(), State(2), read)
	p.refused(t, err, "a write of somebody else")
	p.refused(t, s.Unlock(t.Context(), "2"), "another ID")
	check(t, other, State(1))
	must(t, s.Unlock(t.Context(), "1"))
	if holder, err := s.Holder(t.Context()); !errors.Is(err, store.ErrHolderUnknown) && (err != nil || holder != nil) {
		t.Errorf("given back, the holder is %v, %v", holder, err)
	}
	must(t, other.Lock(t.Context(), Lock("2")))
	must(t, other.Unlock(t.Context(), "2"))
	if h.Renames { // by the ID that people use, others release the lock
		must(t, s.Lock(t.Context(), Lock("1")))
		holder, err := other.Holder(t.Context())
		must(t, err)
		must(t, other.Unlock(t.Context(), holder.ID))
		if holder, err = other.Holder(t.Context()); err != nil || holder != nil {
			t.Errorf("released by its other ID, the holder is %v, %v", holder, err)
		}
	}
}

// testOneWinner has eight ask at once, again and again.
func testOneWinner(t *testing.T, h Harness) {
	p := h.Place(t, "state")
	var lockers []store.State
	for range 8 {
		lockers = append(lockers, p.Open(t))
	}
	rounds := 20
	if h.Slow {
		rounds = testkit.Rounds(rounds)
	}
	for round := range rounds {
		var wg sync.WaitGroup
		won := make(chan int, len(lockers))
		for i, s := range lockers {
			wg.Go(func() {
				err := s.Lock(t.Context(), Lock(fmt.Sprint(i)))
				if _, held := errors.AsType[*store.HeldError](err); err == nil {
					won <- i
				} else if !held {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		wg.Wait()
		if len(won) != 1 {
			t.Fatalf("round %d: %d have the lock", round, len(won))
		}
		i := <-won
		must(t, lockers[i].Unlock(t.Context(), fmt.Sprint(i)))
	}
}

// testLost: without its lock, nobody writes over what others may write.
func testLost(t *testing.T, h Harness) {
	p := h.Place(t, "state")
	s := p.Open(t)
	read := write(t, s, State(1), "")
	must(t, s.Lock(t.Context(), Lock("1")))
	p.Lose(t)
	other := p.Open(t)
	must(t, other.Lock(t.Context(), Lock("2")))
	_, err := s.Write(t.Context(), State(2), read)
	p.refused(t, err, "a write without the lock")
	must(t, other.Unlock(t.Context(), "2"))
	if got, _, err := other.Read(t.Context()); err != nil || bytes.Equal(got, State(2)) {
		t.Errorf("what was refused is there, or %v", err)
	}
}

// testLies: nothing is lost in silence because a server says yes and keeps nothing.
func testLies(t *testing.T, h Harness) {
	if h.Place(t, "state").Lie == nil {
		t.Skip("there is no server")
	}
	begin := func(t *testing.T, what Lie) (p Place, s store.State, read store.Version) {
		t.Helper()
		p = h.Place(t, "state")
		read = write(t, p.Open(t), State(1), "")
		p.Lie(t, what)
		return p, p.Open(t), read
	}
	t.Run("lock", func(t *testing.T) {
		p, s, read := begin(t, LieOfLock)
		other := p.Open(t)
		errLock, errOther := s.Lock(t.Context(), Lock("1")), other.Lock(t.Context(), Lock("2"))
		if errLock != nil || errOther != nil { // then nobody goes on
			return
		}
		_, err := s.Write(t.Context(), State(2), read)
		if _, errOther := other.Write(t.Context(), State(3), read); errOther == nil || err == nil && !errors.Is(errOther, store.ErrChanged) {
			t.Errorf("two have the lock, and both write: %v, %v", err, errOther)
		}
		if err == nil {
			check(t, s, State(2))
		} else {
			check(t, s, State(1))
		}
	})
	t.Run("write", func(t *testing.T) {
		p, s, read := begin(t, LieOfWrite)
		must(t, s.Lock(t.Context(), Lock("1")))
		_, err := s.Write(t.Context(), State(2), read)
		p.refused(t, err, "a write that is not done")
		check(t, s, State(1))
	})
	t.Run("first write", func(t *testing.T) {
		p := h.Place(t, "state")
		s := p.Open(t)
		p.Lie(t, LieOfWrite)
		must(t, s.Lock(t.Context(), Lock("1")))
		_, err := s.Write(t.Context(), State(1), "")
		p.refused(t, err, "a first write that is not done")
		check(t, s, nil)
	})
	t.Run("remove", func(t *testing.T) {
		p, s, read := begin(t, LieOfRemove)
		must(t, s.Lock(t.Context(), Lock("1")))
		p.refused(t, s.Remove(t.Context(), read), "a state that is not removed")
		check(t, s, State(1))
	})
}

// testWeak: a weak ETag names a version as well as a strong one.
func testWeak(t *testing.T, h Harness) {
	p := h.Place(t, "state")
	if p.Weaken == nil {
		t.Skip("there are no ETags")
	}
	p.Weaken(t)
	s, other := p.Open(t), p.Open(t)
	first := write(t, s, State(1), "")
	second := write(t, other, State(2), first)
	if _, err := s.Write(t.Context(), State(3), first); !errors.Is(err, store.ErrChanged) {
		t.Errorf("an older version: %v", err)
	}
	must(t, s.Lock(t.Context(), Lock("1")))
	must(t, s.Remove(t.Context(), second))
	must(t, s.Unlock(t.Context(), "1"))
	check(t, other, nil)
}

func testHuge(t *testing.T, h Harness) {
	s := h.Place(t, "state").Open(t)
	data := bytes.Repeat([]byte("0123456789abcdef"), 100<<16)
	write(t, s, data, "")
	got, _, err := s.Read(t.Context())
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

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
)

// Harness lets [Run] use a store.
type Harness struct {
	Place Places

	Unversioned bool     // two that have read the same state may both write it
	Huge        bool     // a state of 100 MiB is kept here
	Slow        bool     // each call starts programs: there are fewer rounds
	Again       bool     // the same store by another way: in "make soak", all of it is tried there, too
	Nameless    []string // names that are refused

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

	Secrets []string // which appear in no error
}

// State is what is stored: as an envelope, with a label.
func State(serial int) []byte {
	return fmt.Appendf(nil, `{"serial":%d,"lineage":"l","meta":{},"encrypted_data":"%s","encryption_version":"v0"}`, serial,
		strings.Repeat("x", 100+serial))
}

// Lock is one of a CLI.
func Lock(id string) store.Lock {
	return store.Lock{ID: id, Operation: "OperationTypeApply", Who: id + "@host", Version: "1.12.6", Created: "2026-11-27T00:00:00Z"}
}

// Run tests one kind.
func Run(t *testing.T, h Harness) {
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
			t.Run(name, func(t *testing.T) { testLife(t, place(t, "state")) })
		}
	}
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
func testLife(t *testing.T, p Place) {
	t.Helper()
	var want []byte
	var older store.Version
	for program := range 3 {
		s := store.Careful(p.Open(t))
		must(t, s.Ready(t.Context()))
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
		if holder, err := s.Holder(t.Context()); !errors.Is(err, store.ErrUntold) && (err != nil || holder != nil) {
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
	read := write(t, s, State(1), "")
	p.Put(t, State(2))
	_, err := s.Write(t.Context(), State(3), read)
	if !errors.Is(err, store.ErrChanged) {
		t.Errorf("without a lock: %v", err)
	}
	p.refused(t, err, "without a lock")
	check(t, s, State(2))
	if h.Unversioned {
		return
	}
	must(t, s.Lock(t.Context(), Lock("1")))
	for what, read := range map[string]store.Version{"an older one": read, "none": ""} {
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
		if held, ok := errors.AsType[*store.HeldError](err); !ok || held.By == nil || held.By.ID != "1" || held.By.Who != "1@host" {
			t.Errorf("%s: %v", what, err)
		}
	}
	if holder, err := other.Holder(t.Context()); !errors.Is(err, store.ErrUntold) && (err != nil || holder.ID != "1") {
		t.Errorf("the holder is %v, %v", holder, err)
	}
	_, err := other.Write(t.Context(), State(2), read)
	p.refused(t, err, "a write of somebody else")
	p.refused(t, s.Unlock(t.Context(), "2"), "another ID")
	check(t, other, State(1))
	must(t, s.Unlock(t.Context(), "1"))
	if holder, err := s.Holder(t.Context()); !errors.Is(err, store.ErrUntold) && (err != nil || holder != nil) {
		t.Errorf("given back, the holder is %v, %v", holder, err)
	}
	must(t, other.Lock(t.Context(), Lock("2")))
	must(t, other.Unlock(t.Context(), "2"))
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

func testHuge(t *testing.T, h Harness) {
	s := h.Place(t, "state").Open(t)
	data := bytes.Repeat([]byte("0123456789abcdef"), 100<<16)
	write(t, s, data, "")
	got, _, err := s.Read(t.Context())
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

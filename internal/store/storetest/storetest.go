// Package storetest provides the test suite that every store must pass.
package storetest

import (
	"bytes"
	"context"
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
	Properties store.Properties // the properties of the store

	Huge     bool     // a state of 100 MiB is kept here
	Slow     bool     // each call starts programs: there are fewer rounds
	Again    bool     // the same store by another way: in "make soak", all of it is tried there, too
	Nameless []string // names that are refused
	Renames  bool     // people name a lock by another ID than the one of its holder

	// Versioned creates places where the store keeps older versions of the state. It is nil if every place does, or if
	// the states are no [store.Historian].
	Versioned Places

	// OwnHistory means that the test of the store checks versions itself, because the server does less than others.
	OwnHistory bool

	// The next two fields start servers that misbehave. They are nil if there is no such server.
	RightRefused Places // servers that refuse the usual form of a condition, even if it is met
	FirstSpecial Places // servers that make the first object in an empty place special, for example impossible to remove
}

// Places creates a new, empty place for the named state.
type Places func(t *testing.T, name string) Place

// Place is the place of one state.
type Place struct {
	// Open returns the state, as another program would open it.
	Open func(t *testing.T) store.State

	// Put writes data as another program that ignores locks would.
	Put func(t *testing.T, data []byte)

	// Lose removes the lock, even though a run holds it.
	Lose func(t *testing.T)

	// Lie makes the server report success for one kind of request from now on, without doing anything. It is nil if
	// there is no server.
	Lie func(t *testing.T, what Lie)

	// Weaken makes the server send weak ETags, like a proxy that compresses responses. It is nil if there are no ETags.
	Weaken func(t *testing.T)

	Secrets []string // must not appear in errors
}

// Lie is a request for which a server falsely reports success.
type Lie string

// These are the requests about which a server may lie.
const (
	LieOfLock   Lie = "lock"
	LieOfWrite  Lie = "write"
	LieOfRemove Lie = "remove"
)

// State returns a state to store, in the form of an envelope with a label.
func State(serial int) []byte {
	return fmt.Appendf(nil, `{"serial":%d,"lineage":"l","meta":{},"encrypted_data":"%s","encryption_version":"v0"}`, serial,
		strings.Repeat("x", 100+serial))
}

// Lock returns a lock such as Terraform or OpenTofu would create.
func Lock(id string) store.Lock {
	return store.Lock{ID: id, Operation: "OperationTypeApply", Who: id + "@host", Version: "1.12.6", Created: "2026-11-27T00:00:00Z"}
}

// Run tests one kind of store in the way wrap uses it, see [careful.New].
func Run(t *testing.T, h Harness) {
	carefully := func(place Places) Places {
		return func(t *testing.T, name string) Place {
			t.Helper()
			p := place(t, name)
			open := p.Open
			p.Open = func(t *testing.T) store.State { t.Helper(); return careful.New(open(t), h.Properties) }
			return p
		}
	}
	h.Place = carefully(h.Place)
	if h.Versioned == nil {
		h.Versioned = h.Place
	} else {
		h.Versioned = carefully(h.Versioned)
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
	t.Run("interrupted", func(t *testing.T) { testInterrupted(t, h) })
	t.Run("history", func(t *testing.T) { testHistory(t, h) })
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

// write writes data under a lock.
func write(t *testing.T, s store.State, data []byte, read store.Version) store.Version {
	t.Helper()
	must(t, s.Lock(t.Context(), Lock("writer")))
	next, err := s.Write(t.Context(), data, read)
	must(t, err)
	must(t, s.Unlock(t.Context(), "writer"))
	return next
}

// check compares the stored state with want, and returns its version.
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

// refused checks that there is an error, and that it contains no secrets.
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

// testLife runs three programs in a row. Each reads the state under the lock, and the last two write it twice.
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
	must(t, s.Lock(t.Context(), Lock("1"))) // as if the first response had been lost
	for what, err := range map[string]error{"another": other.Lock(t.Context(), Lock("2")), "a second": s.Lock(t.Context(), Lock("2"))} {
		p.refused(t, err, what)
		held, ok := errors.AsType[*store.HeldError](err)
		if !ok || held.By == nil || held.By.Who != "1@host" || (held.By.ID == "1") == h.Renames {
			t.Errorf("%s: %v", what, err)
		}
	}
	if holder, err := other.Holder(t.Context()); !errors.Is(err, store.ErrHolderUnknown) && (err != nil || (holder.ID == "1") == h.Renames) {
		t.Errorf("the holder is %v, %v", holder, err)
	}
	_, err := other.Write(t.Context(), State(2), read)
	p.refused(t, err, "a write of someone else")
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

// testOneWinner lets eight runs request the lock at the same time, many times.
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

// testLost checks that a run that lost its lock does not overwrite the state.
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

// testInterrupted checks that the error of a canceled read wraps [context.Canceled].
func testInterrupted(t *testing.T, h Harness) {
	p := h.Place(t, "state")
	p.Put(t, State(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := p.Open(t).Read(ctx); err != nil && !errors.Is(err, context.Canceled) { // a file needs no request
		t.Errorf("got %v", err)
	}
}

// Historian returns the ability of a state to list its versions.
func Historian(t *testing.T, s store.State) store.Historian {
	t.Helper()
	h, ok := store.As[store.Historian](s)
	if !ok {
		t.Fatalf("%T does not list versions", s)
	}
	return h
}

// Versions compares the newest versions with want, which has the status and the size of each, as in "current 2, older
// 1, more". It ends with "more" if there are more than limit. The ids are those of the newest versions; "" matches any.
func Versions(t *testing.T, h store.Historian, limit int, want string, ids ...string) []store.Kept {
	t.Helper()
	kept, more, err := h.Versions(t.Context(), limit)
	var texts []string
	for i, v := range kept {
		texts = append(texts, fmt.Sprint([...]string{"older ", "current ", "deleted ", "undelete "}[v.Status], v.Size))
		if i < len(ids) && ids[i] != "" && ids[i] != v.ID || v.Created.IsZero() {
			t.Errorf("version %d of %d is %+v, the IDs are %q", i, limit, v, ids)
		}
	}
	if more {
		texts = append(texts, "more")
	}
	if got := strings.Join(texts, ", "); err != nil || got != want {
		t.Fatalf("%d versions: got %s, %v, want %s", limit, got, err, want)
	}
	return kept
}

// testHistory checks the versions of a state that is a [store.Historian].
func testHistory(t *testing.T, h Harness) {
	p := h.Versioned(t, "state")
	if _, ok := store.As[store.Historian](p.Open(t)); !ok || h.OwnHistory {
		t.Skip("the store lists no versions")
	}
	p.checkVersions(t, nil, nil)
	var older [][]byte
	var read store.Version
	for serial := 1; serial < 4; serial++ {
		read = write(t, p.Open(t), State(serial), read) // each write is a run of its own
		p.checkVersions(t, State(serial), older)
		older = append(older, State(serial))
	}
	s := p.Open(t)
	must(t, s.Lock(t.Context(), Lock("remover")))
	must(t, s.Remove(t.Context(), check(t, s, State(3))))
	must(t, s.Unlock(t.Context(), "remover"))
	p.checkVersions(t, nil, older)
	write(t, p.Open(t), State(4), "")
	p.checkVersions(t, State(4), older)
}

// checkVersions checks that the versions of a state are the current one, unless it is nil, and some of the older ones,
// which it gets in the order in which they were written. Some stores encrypt the older ones, or keep only one of them.
func (p Place) checkVersions(t *testing.T, current []byte, older [][]byte) {
	t.Helper()
	ctx := t.Context()
	history := Historian(t, p.Open(t))
	kept, more, err := history.Versions(ctx, 100)
	if err != nil || more || len(kept) < min(len(older), 1) {
		t.Fatalf("the versions are %+v, %t, %v", kept, more, err)
	}
	ids, states := map[string]bool{}, 0
	for i, k := range kept {
		isNewer := i > 0 && k.Created.After(kept[i-1].Created)
		if ids[k.ID] || k.ID == "" || isNewer || (k.Status == store.KeptCurrent) != (i == 0 && current != nil) {
			t.Errorf("version %d of %+v", i, kept)
		}
		ids[k.ID] = true
		whole, err := history.ReadVersion(ctx, k.ID, 0, -1)
		switch k.Status {
		case store.KeptDeleted, store.KeptUndelete:
			if !errors.Is(err, store.ErrNoVersion) || k.Status == store.KeptDeleted && k.Size != 0 {
				t.Errorf("%+v is read as %.100q, %v", k, whole, err)
			}
			continue
		case store.KeptCurrent:
			if !bytes.Equal(whole, current) {
				t.Errorf("the current state is %.200q, %v", whole, err)
			}
		default:
			states++
			at := slices.IndexFunc(older, func(one []byte) bool { return bytes.HasSuffix(whole, one) })
			if at < 0 {
				t.Fatalf("%+v is read as %.200q, %v", k, whole, err)
			}
			older = older[:at]
		}
		must(t, err)
		if int64(len(whole)) != k.Size {
			t.Errorf("%+v has %d bytes", k, len(whole))
		}
		for _, part := range [][2]int64{{0, 10}, {7, 1}, {k.Size - 5, 20}, {k.Size, 10}, {3, -1}} {
			end := k.Size
			if part[1] >= 0 {
				end = min(part[0]+part[1], k.Size)
			}
			if got, err := history.ReadVersion(ctx, k.ID, part[0], part[1]); err != nil || !bytes.Equal(got, whole[part[0]:end]) {
				t.Errorf("%d bytes from %d on are %.100q, %v", part[1], part[0], got, err)
			}
		}
	}
	if older != nil && states == 0 {
		t.Errorf("there is no older version in %+v", kept)
	}
	for _, id := range []string{"", "none", "../state", "-h", "a b", "0000000", strings.Repeat("0", 40)} {
		_, err := history.ReadVersion(ctx, id, 0, 10)
		if !errors.Is(err, store.ErrNoVersion) {
			t.Errorf("the version %q: %v", id, err)
		}
		p.refused(t, err, "a version that does not exist")
	}
	for limit := 1; limit <= min(len(kept), 3); limit++ {
		if some, more, err := history.Versions(ctx, limit); err != nil || !slices.Equal(some, kept[:limit]) || more != (limit < len(kept)) {
			t.Errorf("%d of the versions are %+v, %t, %v; all are %+v", limit, some, more, err, kept)
		}
	}
}

// testLies checks that no state is lost without an error when a server reports success but keeps nothing.
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
		if errLock != nil || errOther != nil { // then neither run continues
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

// testWeak checks that a weak ETag identifies a version as well as a strong one.
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

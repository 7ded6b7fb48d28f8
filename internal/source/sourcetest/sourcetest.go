// Package sourcetest contains the tests that every source must pass.
package sourcetest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/faults"
)

// Harness lets [Run] create places that one kind of source can read.
type Harness struct {
	Kind source.Kind

	// Place creates a new place that holds data, or that has no file if data is nil.
	Place func(t *testing.T, data []byte) Place

	// Bad creates places that exist but cannot be read. The key names the problem: wrong credentials, no
	// server, missing permissions. Reading them must return an error, but never a MissingError.
	Bad map[string]func(t *testing.T) Place

	// Stuck creates a place that never responds. It is nil if the kind has no such place.
	Stuck func(t *testing.T) Place

	// EmptyIsNone says that reading an empty file returns a [source.MissingError], because the backends treat
	// an empty file as no state.
	EmptyIsNone bool
}

// Place is the place of a state and says how to read it.
type Place struct {
	Attrs    map[string]cty.Value // the block that the user writes
	Settings source.Settings
	Secrets  faults.Secrets // secrets in Settings; they must not appear in any text

	// Changed returns an error that describes any access to the place other than reading, or nil if there was
	// none. Changed may be nil.
	Changed func() error
}

const maxSize = 1 << 20

// Open creates the source that reads p.
func (p Place) Open(t *testing.T, kind source.Kind, limit int64) source.Source {
	t.Helper()
	if err := errors.Join(unstable.CheckTable(kind.Table), unstable.CheckTable(kind.Credentials)); err != nil {
		t.Fatal(err)
	}
	entry := unstable.NewEntry("data.statecrypt_remote_state.test."+kind.Name, kind.Table, p.Attrs)
	values, err := entry.Decode(kind.Table, p.Settings.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	p.Settings.Credentials.Table = kind.Credentials
	s, err := kind.Start(p.Settings)(source.Request{Values: values, Workspace: "default", MaxSize: limit})
	if err != nil {
		t.Fatal(err)
	}
	p.Secrets.CheckText(t, "String()", s.String())
	return s
}

// fails reads from s, which must fail. It checks the error for secrets and returns it.
func (p Place) fails(ctx context.Context, t *testing.T, s source.Source) error {
	t.Helper()
	snap, err := s.Fetch(ctx)
	if err == nil {
		t.Fatalf("got %d bytes, want an error", len(snap.Data))
	}
	p.Secrets.CheckError(t, err)
	return err
}

func (p Place) checkUnchanged(t *testing.T) {
	t.Helper()
	if p.Changed == nil {
		return
	}
	if err := p.Changed(); err != nil {
		t.Errorf("the place was not only read: %v", err)
	}
}

// Run runs all tests for one kind of source.
func Run(t *testing.T, h Harness) {
	data := []byte(`{"version": 4, "outputs": {}}` + strings.Repeat(" ", 100_000))
	t.Run("reads", func(t *testing.T) { testReads(t, h, data) })
	t.Run("empty", func(t *testing.T) {
		if h.EmptyIsNone {
			testMissing(t, h, []byte{})
		} else {
			testReads(t, h, []byte{})
		}
	})
	t.Run("owned by the caller", func(t *testing.T) { testOwned(t, h, data) })
	t.Run("at once", func(t *testing.T) { testAtOnce(t, h, data) })
	t.Run("missing", func(t *testing.T) { testMissing(t, h, nil) })
	t.Run("too large", func(t *testing.T) { testTooLarge(t, h, data) })
	t.Run("cancelled", func(t *testing.T) { testCancelled(t, h, data) })
	t.Run("stuck", func(t *testing.T) { testStuck(t, h) })
	for name, place := range h.Bad {
		t.Run("bad/"+name, func(t *testing.T) { testBad(t, h, place(t)) })
	}
}

func testReads(t *testing.T, h Harness, data []byte) {
	p := h.Place(t, data)
	s := p.Open(t, h.Kind, int64(len(data))) // a file of exactly the size limit is not too large
	snap := Fetch(t, s)
	if !bytes.Equal(snap.Data, data) {
		t.Errorf("got %d bytes, want %d", len(snap.Data), len(data))
	}
	for _, w := range snap.Warnings {
		if w.Title == "" {
			t.Errorf("the warning %q has no title", w.Text)
		}
		p.Secrets.CheckText(t, "a warning", w.Text)
	}
	p.Secrets.CheckText(t, "the revision", snap.Revision)
	if again := Fetch(t, s); again.Revision != snap.Revision {
		t.Errorf("the revision changed from %q to %q", snap.Revision, again.Revision)
	}
	p.checkUnchanged(t)
}

func testOwned(t *testing.T, h Harness, data []byte) {
	s := h.Place(t, data).Open(t, h.Kind, maxSize)
	clear(Fetch(t, s).Data)
	if again := Fetch(t, s); !bytes.Equal(again.Data, data) {
		t.Error("writing into the first result changed the second one")
	}
}

func testAtOnce(t *testing.T, h Harness, data []byte) {
	s := h.Place(t, data).Open(t, h.Kind, maxSize)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			snap, err := s.Fetch(t.Context())
			if err != nil || !bytes.Equal(snap.Data, data) {
				t.Errorf("got another file, or %v", err)
				return
			}
			clear(snap.Data) // a data race if the data is shared
		})
	}
	wg.Wait()
}

func testMissing(t *testing.T, h Harness, data []byte) {
	p := h.Place(t, data)
	err := p.fails(t.Context(), t, p.Open(t, h.Kind, maxSize))
	if m, ok := source.IsMissing(err); !ok || m.Detail == "" {
		t.Errorf("got %v, want a MissingError with a detail", err)
	}
	p.checkUnchanged(t)
}

func testTooLarge(t *testing.T, h Harness, data []byte) {
	p := h.Place(t, data)
	limit := int64(len(data)) - 1
	err := p.fails(t.Context(), t, p.Open(t, h.Kind, limit))
	if !strings.Contains(err.Error(), meter.TooLarge(limit).Error()) {
		t.Errorf("got %v, want that the file is too large", err)
	}
}

func testCancelled(t *testing.T, h Harness, data []byte) {
	p := h.Place(t, data)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.fails(ctx, t, p.Open(t, h.Kind, maxSize)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func testStuck(t *testing.T, h Harness) {
	if h.Stuck == nil {
		t.Skip("this kind has no place that never answers")
	}
	p := h.Stuck(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second/4)
	defer cancel()
	begin := time.Now()
	err := p.fails(ctx, t, p.Open(t, h.Kind, maxSize))
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("it took %s to give up", took)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want context.DeadlineExceeded", err)
	}
}

func testBad(t *testing.T, h Harness, p Place) {
	checkNotMissing(t, p.fails(t.Context(), t, p.Open(t, h.Kind, maxSize)))
	p.checkUnchanged(t)
}

func checkNotMissing(t *testing.T, err error) {
	t.Helper()
	if _, ok := source.IsMissing(err); ok {
		t.Errorf("got %v: a read that failed does not show that there is no state", err)
	}
}

// Fetch reads from s. It fails the test if that is not possible.
func Fetch(t *testing.T, s source.Source) *source.Snapshot {
	t.Helper()
	snap, err := s.Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// Lacks checks which missing block an error reports.
func Lacks(t *testing.T, err error, path string, arguments ...string) {
	t.Helper()
	if lacks, ok := fault.Find[fault.NoBlock](err); !ok || lacks.Path != path || !slices.Equal(lacks.Arguments, arguments) {
		t.Errorf("got %+v, want %s with %q", lacks, path, arguments)
	}
}

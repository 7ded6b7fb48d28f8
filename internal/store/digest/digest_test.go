package digest_test

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/notice"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/digest"
)

// alone is a state without a digest.
type alone struct {
	store.State
	data []byte
	err  error // of writes and removals
}

func (a *alone) Read(context.Context) ([]byte, store.Version, error) {
	return a.data, store.Digest(a.data), nil
}

func (a *alone) Write(_ context.Context, data []byte, _ store.Version) (store.Version, error) {
	if a.err == nil {
		a.data = data
	}
	return store.Digest(a.data), a.err
}

func (a *alone) Remove(context.Context, store.Version) error { return a.err }

// table is one whose only item is that of the state.
type table struct {
	sum    string // "" for no item
	err    error  // of changes of the item
	locked error
}

func (i *table) Get(context.Context) (string, bool, error) { return i.sum, i.sum != "", nil }

func (i *table) Put(_ context.Context, sum string) error {
	if i.err == nil {
		i.sum = sum
	}
	return i.err
}

func (i *table) Delete(ctx context.Context) error { return i.Put(ctx, "") }

func (i *table) MayChange(context.Context) error { return i.locked }

func sum(data string) string { return fmt.Sprintf("%x", md5.Sum([]byte(data))) }

func of(a *alone, i *table) *digest.State {
	return &digest.State{State: a, Item: i, Object: "net", Table: "locks", Name: "states/net-md5"}
}

// TestRead: a digest of another state is said, and one without a state is an error.
func TestRead(t *testing.T) {
	t.Parallel()
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "reads")
	for name, c := range map[string]struct {
		data, sum    string
		warns, fails bool
	}{
		"the same":    {data: "x", sum: sum("x")},
		"another":     {data: "x", sum: sum("y"), warns: true},
		"none":        {data: "x", warns: true},
		"nothing":     {},
		"of no state": {sum: sum("x"), fails: true},
	} {
		var said []string
		ctx := notice.With(t.Context(), func(text string) { said = append(said, text) })
		a := &alone{}
		if c.data != "" {
			a.data = []byte(c.data)
		}
		data, _, err := of(a, &table{sum: c.sum}).Read(ctx)
		if string(data) != c.data || (err != nil) != c.fails || (len(said) > 0) != c.warns {
			t.Errorf("%s: got %q, %v, said %q", name, data, err, said)
		}
		if c.fails {
			says.Error(t, name, err)
		}
		if c.warns {
			says.Check(t, name, strings.Join(said, "\n"))
		}
	}
}

// TestChanges: a digest follows its state, and a state that could not be written keeps its digest.
func TestChanges(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	a, i := &alone{data: []byte("x")}, &table{sum: sum("x")}
	s := of(a, i)
	if _, err := s.Write(t.Context(), []byte("y"), ""); err != nil || i.sum != sum("y") {
		t.Errorf("got %v, the digest %s", err, i.sum)
	}
	a.err = failed
	if _, err := s.Write(t.Context(), []byte("z"), ""); !errors.Is(err, failed) || i.sum != sum("y") {
		t.Errorf("a write that failed: got %v, the digest %s", err, i.sum)
	}
	if err := s.Remove(t.Context(), ""); !errors.Is(err, failed) || i.sum != sum("y") {
		t.Errorf("a removal that failed: got %v, the digest %s", err, i.sum)
	}
	a.err, i.err = nil, failed
	if _, err := s.Write(t.Context(), []byte("z"), ""); !errors.Is(err, store.ErrUnfinished) || i.sum != sum("y") {
		t.Errorf("a digest that could not be written: got %v, the digest %s", err, i.sum)
	}
	i.err, i.locked = nil, store.ErrLost
	if err := s.Settle(t.Context(), []byte("z")); !errors.Is(err, store.ErrLost) || i.sum != sum("y") {
		t.Errorf("without the lock: got %v, the digest %s", err, i.sum)
	}
	i.locked = nil
	if err := s.Settle(t.Context(), []byte("z")); err != nil || i.sum != sum("z") {
		t.Errorf("under the lock: got %v, the digest %s", err, i.sum)
	}
	i.locked = store.ErrLost // which nobody asks for if the digest is right
	if settled, err := s.IsSettled(t.Context(), []byte("z")); err != nil || !settled || s.Settle(t.Context(), []byte("z")) != nil {
		t.Errorf("settled: got %t, %v", settled, err)
	}
	if err := s.Remove(t.Context(), ""); err != nil || i.sum != "" {
		t.Errorf("removed: got %v, the digest %s", err, i.sum)
	}
}

package store_test

import (
	"context"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

type proven struct{ store.State }

func (proven) Ready(context.Context) error { return nil }

type around struct{ store.State }

func (a around) Unwrap() store.State { return a.State }

// TestAs: an ability is found through decorators, and a state without it has none.
func TestAs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		state store.State
		want  bool
	}{
		"its own":      {proven{}, true},
		"decorated":    {around{around{proven{}}}, true},
		"of none":      {around{}, false},
		"no state":     {nil, false},
		"not a prover": {struct{ store.State }{proven{}}, false},
	} {
		if _, ok := store.As[store.Prover](c.state); ok != c.want {
			t.Errorf("%s: got %t", name, ok)
		}
	}
	if _, ok := store.As[store.Digested](around{proven{}}); ok {
		t.Error("a prover has a digest")
	}
}

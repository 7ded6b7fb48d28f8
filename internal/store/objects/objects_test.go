package objects

import (
	"context"
	"errors"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// TestProve tests the proof with stores that ignore a condition, refuse one that is met, or fail.
func TestProve(t *testing.T) {
	t.Parallel()
	failed := errors.New("the request failed")
	for name, c := range map[string]struct {
		there                              bool // whether an earlier run has left the object
		ignoresNone, ignoresMatch, refuses bool
		failsAt                            int // the request that fails; 0 for none
		faster                             int // the times that another run replaces the object just before
		works                              bool
		requests                           int
	}{
		"the first run":                  {works: true, requests: 4},
		"a later run":                    {works: true, there: true, requests: 4},
		"none is ignored":                {ignoresNone: true, requests: 2},
		"none is ignored, and it exists": {ignoresNone: true, there: true, requests: 2},
		"match is ignored":               {ignoresMatch: true, there: true, requests: 4},
		"match is always refused":        {refuses: true, there: true, requests: 4},
		"another run is faster":          {works: true, there: true, faster: 1, requests: 6},
		"others are always faster":       {there: true, faster: 100, requests: 1 + 1 + 2*50},
		"the first request fails":        {failsAt: 1, requests: 1},
		"the second request fails":       {failsAt: 2, requests: 2},
		"a look fails":                   {failsAt: 2, there: true, requests: 2},
		"the third request fails":        {failsAt: 3, requests: 3},
		"the last request fails":         {failsAt: 4, requests: 4},
	} {
		n, version := 0, ""
		if c.there {
			version = "v"
		}
		ask := func(refused bool) (string, error) {
			n++
			switch {
			case n == c.failsAt:
				return "", failed
			case refused:
				return "", store.ErrChanged
			}
			version += "v"
			return version, nil
		}
		err := Trial{
			Look: func(context.Context) (string, error) {
				if n++; n == c.failsAt {
					return "", failed
				}
				return version, nil
			},
			Create: func(context.Context) (string, error) { return ask(version != "" && !c.ignoresNone) },
			Replace: func(_ context.Context, match string) (string, error) {
				if c.faster > 0 {
					c.faster--
					version += "w"
				}
				return ask(c.refuses || match != version && !c.ignoresMatch)
			},
		}.Prove(t.Context())
		if (err == nil) != c.works || n != c.requests || errors.Is(err, failed) != (c.failsAt > 0) || errors.Is(err, store.ErrChanged) {
			t.Errorf("%s: after %d requests: %v", name, n, err)
		}
	}
}

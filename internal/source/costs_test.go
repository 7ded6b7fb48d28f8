package source

import (
	"fmt"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/amplification"
)

// Whoever can lock a state writes the lock's description.
func TestCosts(t *testing.T) {
	locks := amplification.Grammar{
		Name: "locks",
		Productions: []amplification.Production{
			{Name: "members"}, {Name: "length of names"}, {Name: "length of texts"}, {Name: "escapes"}, {Name: "depth", Most: 9000},
		},
		File: func(n amplification.Counts) string {
			var b strings.Builder
			for i := range n["members"] {
				fmt.Fprintf(&b, `"%d%s":1,`, i, strings.Repeat("x", n["length of names"]))
			}
			fmt.Fprintf(&b, `"Info":%s1%s,`, strings.Repeat("[", n["depth"]), strings.Repeat("]", n["depth"]))
			return fmt.Sprintf(`{%s"ID":"%s","Who":"%s"}`, &b, strings.Repeat("x", n["length of texts"]), strings.Repeat(`\u001b`, n["escapes"]))
		},
	}
	amplification.Grow(t, 80, []amplification.Grammar{locks}, func(_ *testing.T, file string) func() error {
		return func() error {
			_, err := ParseLock([]byte(file))
			return err
		}
	})
}

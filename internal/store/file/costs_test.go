package file

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/amplification"
)

// What is beside a state may come with it, as from a repository.
func TestCosts(t *testing.T) {
	states := []amplification.Grammar{{
		Name: "state",
		Productions: []amplification.Production{
			{Name: "members"}, {Name: "length of names"}, {Name: "length of texts"}, {Name: "depth", Most: 9000},
		},
		File: func(n amplification.Counts) string {
			var text strings.Builder
			text.WriteString(`{"serial":1,"lineage":"` + strings.Repeat("x", n["length of texts"]) + `"`)
			for i := range n["members"] {
				fmt.Fprintf(&text, `,"%d%s":null`, i, strings.Repeat("x", n["length of names"]))
			}
			return text.String() + `,"deep":` + strings.Repeat("[", n["depth"]) + strings.Repeat("]", n["depth"]) + "}"
		},
	}}
	amplification.Grow(t, 300, states, func(t *testing.T, file string) func() error {
		path := filepath.Join(t.TempDir(), "terraform.tfstate")
		s := at(t, path)
		must(t, s.writeJournal(t.Context(), nil, []byte("{}")))
		journal, err := os.ReadFile(s.journal)
		must(t, err)
		put(t, path, []byte(file)) // which is compared with it
		return func() error {
			put(t, s.journal, journal)
			if err := s.Lock(t.Context(), storetest.Lock("1")); err != nil {
				return err
			}
			return s.Unlock(t.Context(), "1")
		}
	})
}

package file

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/amplification"
)

// What is beside a state may come with it, as from a repository.
func TestCosts(t *testing.T) {
	amplification.Grow(t, 300, amplification.InJSON(`{"serial":1,"lineage":"x"}`), func(t *testing.T, file string) func() error {
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

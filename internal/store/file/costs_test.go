package file

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
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

// The folder .git may come with a module, as from an archive.
func TestCostsOfIndexes(t *testing.T) {
	index := amplification.Grammar{
		Name:        "index",
		Productions: []amplification.Production{{Name: "entries"}, {Name: "length of names"}, {Name: "same beginning"}},
		File: func(n amplification.Counts) string {
			text := append([]byte("DIRC"), 0, 0, 0, 4, 0xff, 0xff, 0xff, 0xff)
			entry := func(keep byte, name string, length int) {
				text = append(text, make([]byte, 40+20)...)
				text = binary.BigEndian.AppendUint16(text, uint16(min(length, 0xfff))) //nolint:gosec // at most 0xfff
				text = append(append(append(text, keep), name...), 0)
			}
			length := min(n["length of names"], 1<<15)
			entry(0, strings.Repeat("a", length), length)
			for range n["entries"] {
				entry(0, "", length)
			}
			for i := range n["same beginning"] {
				entry(0, "a", length+i+1)
			}
			return string(text)
		},
	}
	amplification.Grow(t, 300, []amplification.Grammar{index}, func(t *testing.T, file string) func() error {
		dir := t.TempDir()
		must(t, os.Mkdir(filepath.Join(dir, ".git"), 0o700))
		put(t, filepath.Join(dir, ".git", "index"), []byte(file))
		put(t, filepath.Join(dir, "terraform.tfstate"), nil)
		s := at(t, filepath.Join(dir, "terraform.tfstate"))
		return func() error {
			if s.Reverts(t.Context()) {
				return errors.New("it is tracked")
			}
			return nil
		}
	})
}

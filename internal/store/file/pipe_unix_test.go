//go:build unix

package file

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
)

// Nobody waits for a pipe that has the name of a journal.
func TestPipeInPlaceOfTheJournal(t *testing.T) {
	t.Parallel()
	s := at(t, filepath.Join(t.TempDir(), "terraform.tfstate"))
	must(t, syscall.Mkfifo(s.journal, 0o600))
	if err := s.Lock(t.Context(), storetest.Lock("1")); err == nil {
		t.Error("the state was locked")
	}
}

package module

import (
	"errors"
	"io/fs"
	"testing"
)

// TestInitWithoutABackend: init -backend=false finds no state, and leaves no record.
func TestInitWithoutABackend(t *testing.T) {
	t.Parallel()
	m := &Module{Dir: t.TempDir()}
	end, err := m.HideBackend(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if text, err := m.own().Read(recordName); err != nil || string(text) != noState() {
		t.Errorf("the record is %s, %v", text, err)
	}
	end()
	if text, err := m.own().Read(recordName); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("afterwards, there is %s, %v", text, err)
	}
}

package wrap

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// TestInitBesideARun: init -backend=false leaves the record of another run as it was, and a run beside it ends well.
func TestInitBesideARun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, during bool // another run writes its record
	}{
		"alone": {}, "beside a run": {before: true}, "a run begins": {during: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &module{dir: t.TempDir()}
			data := m.own(m.id())
			if c.before {
				if err := writeRecord(t.Context(), data); err != nil {
					t.Fatal(err)
				}
			}
			forget, err := m.hideBackend(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := checkRecord(data); c.before && err != nil {
				t.Errorf("the run beside it ends with %v", err)
			}
			if c.during {
				if err := writeRecord(t.Context(), data); err != nil {
					t.Fatal(err)
				}
			}
			forget()
			text, err := data.read(recordName)
			if isThere := err == nil; isThere != (c.before || c.during) || isThere && string(text) != record {
				t.Errorf("afterwards, there is %s, %v", text, err)
			}
		})
	}
}

// TestKeptOut: a run that has read no state does not forget which state another run has begun with.
func TestKeptOut(t *testing.T) {
	t.Parallel()
	at := directory{path: t.TempDir()}
	holder, keptOut := &memory{at: at, of: "s", changes: true}, &memory{at: at, of: "s", changes: true}
	holder.goOn(t.Context(), "digest")
	keptOut.end(t.Context())
	if base := keptOut.base([]byte("{}"), false); !slices.Equal(base, []store.Version{"digest"}) {
		t.Errorf("the run with the lock has begun with %q", base)
	}
	holder.end(t.Context())
	if base := keptOut.base([]byte("{}"), false); base != nil {
		t.Errorf("afterwards, %q is left", base)
	}
}

// TestLinkedFolder: a command that does nothing with a state is refused as well if a link is in the place of the
// folder that its data would go to.
//
// Promise: Links in modules
func TestLinkedFolder(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"get", "init", "validate"} {
		m := &module{dir: t.TempDir()}
		if err := os.Mkdir(filepath.Join(m.dir, dataName), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(t.TempDir(), filepath.Join(m.dir, dataName, ownName)); err != nil {
			t.Skip(err)
		}
		r := &run{line: &line{command: command{Name: name}}, module: m}
		_, err := r.passThrough(t.Context())
		if _, isForeign := errors.AsType[*foreignError](err); !isForeign {
			t.Errorf("%s writes through a link: %v", name, err)
		}
	}
}

package states

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/files"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// TestKeptOut: a run that has read no state does not forget which state another run has begun with.
func TestKeptOut(t *testing.T) {
	t.Parallel()
	at := files.Directory{Path: t.TempDir()}
	holder, keptOut := &Memory{at: at, of: "s", changes: true}, &Memory{at: at, of: "s", changes: true}
	holder.GoOn(t.Context(), "digest")
	keptOut.End(t.Context())
	if base := keptOut.base([]byte("{}"), false); !slices.Equal(base, []store.Version{"digest"}) {
		t.Errorf("the run with the lock has begun with %q", base)
	}
	holder.End(t.Context())
	if base := keptOut.base([]byte("{}"), false); base != nil {
		t.Errorf("afterwards, %q is left", base)
	}
}

// TestHugeErrored: a state that is too large for wrap is no file that is only in the way.
func TestHugeErrored(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), Errored)
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, files.MaxState+1); err != nil {
		t.Fatal(err)
	}
	wraptest.OpenMistakes(t, "huge state").Failed(t, Errored, "", asErrored(path, Errored))
}

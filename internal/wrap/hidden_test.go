package wrap

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/cmdline"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/files"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/module"
)

// TestLinkedFolder: a command that does nothing with a state is refused as well if a link is in the place of the
// folder that its data would go to.
//
// Promise: Links in modules
func TestLinkedFolder(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"get", "init", "validate"} {
		m := &module.Module{Dir: t.TempDir()}
		if err := os.Mkdir(filepath.Join(m.Dir, files.DataName), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(t.TempDir(), filepath.Join(m.Dir, files.DataName, files.OwnName)); err != nil {
			t.Skip(err)
		}
		r := &run{line: &cmdline.Line{Command: cmdline.Command{Name: name}}, module: m}
		_, err := r.passThrough(t.Context())
		if _, isForeign := errors.AsType[*files.ForeignError](err); !isForeign {
			t.Errorf("%s writes through a link: %v", name, err)
		}
	}
}

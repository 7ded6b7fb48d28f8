//go:build unix

package wrap_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
)

// TestPipesInTheModule: what is no regular file is not read, whatever it is called: a pipe
// would never be written to, and a device never end.
func TestPipesInTheModule(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file, args string
		err        string
	}{
		"the state":             {file: "terraform.tfstate", args: "apply"},
		"its backup":            {file: "terraform.tfstate.backup", args: "plan"},
		"the one not written":   {file: "errored.tfstate", args: "apply", err: "errored.tfstate is in the way of a state"},
		"the same, for a plan":  {file: "errored.tfstate", args: "plan"},
		"a file of the module":  {file: "more.tf", args: "plan", err: "it is not a regular file"},
		"the record":            {file: ".terraform/terraform.tfstate", args: "plan"},
		"the workspace":         {file: ".terraform/environment", args: "plan"},
		"a state of workspaces": {file: "terraform.tfstate.d/w/terraform.tfstate", args: "init"},
	} {
		for kind, put := range map[string]func(string) error{
			"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
			"device": func(path string) error { return os.Symlink("/dev/zero", path) },
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				o, dir, out := scripted(t, newStore(t), "GET", c.args)
				path := filepath.Join(dir, c.file)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := put(path); err != nil {
					t.Skip(err)
				}
				ended := make(chan error, 1)
				go func() {
					_, err := wrap.Run(t.Context(), o)
					ended <- err
				}()
				select {
				case err := <-ended:
					if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
						t.Errorf("got %v, want %q\n%s", err, c.err, out)
					}
				case <-time.After(time.Minute):
					t.Error("wrap waits for it")
				}
			})
		}
	}
}

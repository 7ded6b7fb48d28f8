//go:build unix

package wrap_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// TestPipesInTheModule: what is no regular file is not read, whatever it is called: a pipe
// would never be written to, and a device never end.
//
// Promise: Runs under wrap
func TestPipesInTheModule(t *testing.T) {
	t.Parallel()
	mistakes := wraptest.OpenMistakes(t, "no regular file")
	for name, c := range map[string]struct {
		file, args string
	}{
		"the state":             {file: "terraform.tfstate", args: "apply"},
		"its backup":            {file: "terraform.tfstate.backup", args: "plan"},
		"the one not written":   {file: "errored.tfstate", args: "apply"},
		"the same, for a plan":  {file: "errored.tfstate", args: "plan"},
		"a file of the module":  {file: "more.tf", args: "plan"},
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
				o, dir, _ := scripted(t, newStore(t), "GET", c.args)
				path := filepath.Join(dir, c.file)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := put(path); err != nil {
					t.Skip(err)
				}
				var code int
				var err error
				var told string
				ended := make(chan struct{})
				go func() {
					code, err, told = run(t, o)
					close(ended)
				}()
				select {
				case <-ended:
					mistakes.Ended(t, name+", "+kind, told, code, err)
				case <-time.After(time.Minute):
					t.Error("wrap waits for it")
				}
			})
		}
	}
}

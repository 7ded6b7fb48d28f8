package clitest

import (
	"os"
	"path/filepath"
	"testing"
)

// What is kept on disk is what was written, and nothing else is.
func TestRoundTrip(t *testing.T) {
	t.Setenv("TF_WORKSPACE", "canary")
	t.Setenv("TF_CLI_ARGS", "-canary")
	for _, cli := range All(t) {
		t.Run(cli.Name, func(t *testing.T) {
			t.Parallel()
			p := cli.Project(t, `backend "local" {}`)
			kept := func(workspace string) []byte {
				t.Helper()
				folder := p.dir
				if workspace != "default" {
					folder = filepath.Join(p.dir, "terraform.tfstate.d", workspace)
				}
				data, err := os.ReadFile(filepath.Join(folder, "terraform.tfstate"))
				if err != nil {
					t.Fatal(err)
				}
				return data
			}
			p.RoundTrip(t, kept, kept)
			p.Enlarge(t, 1<<16)
			p.Apply(t, "default")
			p.Check(t, "default", kept("default"))
			p.CheckShown(t, "default", kept("default"))
			p.CheckShown(t, "staging-1", kept("staging-1"))

			file := kept("staging-1")
			for name, check := range map[string]func(testing.TB){
				"another workspace":     func(tb testing.TB) { p.Check(tb, "default", file) },
				"shown":                 func(tb testing.TB) { p.CheckShown(tb, "default", file) },
				"other bytes":           func(tb testing.TB) { p.Compare(tb, "staging-1", file, kept("default")) },
				"nothing":               func(tb testing.TB) { p.Compare(tb, "staging-1", file, nil) },
				"not as it should be":   func(tb testing.TB) { opened(tb, file, !cli.Encrypted) },
				"other text, same name": func(tb testing.TB) { CheckOutputs(tb, file, cli.Encrypted, "staging-1", "x") },
			} {
				r := &recorder{TB: t}
				r.run(check)
				if !r.failed {
					t.Errorf("%s: nothing was found", name)
				}
			}
		})
	}
}

// recorder is a test that may fail.
type recorder struct {
	testing.TB
	failed bool
}

type ended struct{}

func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) Error(...any)          { r.failed = true }

func (r *recorder) Fatal(...any) {
	r.failed = true
	panic(ended{})
}

func (r *recorder) run(check func(testing.TB)) {
	defer func() {
		if v := recover(); v != nil && v != (ended{}) {
			panic(v)
		}
	}()
	check(r)
}

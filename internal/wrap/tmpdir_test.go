package wrap_test

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// TestNoTemporaryFolder: that there is none is said of it, and not of the plan.
//
// Promise: Runs under wrap
func TestNoTemporaryFolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("another variable names it")
	}
	mistakes := wraptest.OpenMistakes(t, "no temporary folder")
	for name, args := range map[string][]string{
		"a plan is made":  {"plan", "-out=p"},
		"a plan is shown": {"show", "p"},
	} {
		o, dir, out := scripted(t, newStore(t), "ready GET", args...)
		if name == "a plan is made" {
			o.Keys.Plan = wraptest.Settings(t, sealing+"\nplan { method = method.aes_gcm.m }").Plan()
		}
		write(t, filepath.Join(dir, "p"), archive(t, "a plan"))
		t.Setenv("TMPDIR", "/nowhere/temporary")
		code, err, told := run(t, o)
		mistakes.Ended(t, name, told, code, err)
		if code != 1 || out.String() != "" || err == nil || !strings.Contains(err.Error(), "/nowhere/temporary") {
			t.Errorf("%s: got %d, %v, and the child was run: %s", name, code, err, out)
		}
	}
}

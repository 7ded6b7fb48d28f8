package wrap_test

import (
	"path/filepath"
	"runtime"
	"slices"
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
		t.Setenv("TMPDIR", filepath.Join(dir, "temporary"))
		code, err, told := run(t, o)
		mistakes.Ended(t, name, told, code, err)
		if code != 1 || out.String() != "" || err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "temporary")) {
			t.Errorf("%s: got %d, %v, and the child was run: %s", name, code, err, out)
		}
	}
}

// TestAbandoned: the folder of a killed run is named if it may hold plaintext, and goes silently if it has nothing but
// the mark.
func TestAbandoned(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("another variable names the folder")
	}
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	for name, text := range map[string]string{"bare/alive": "", "full/alive": "", "full/plan": "a plan", "unmarked/x": ""} {
		write(t, filepath.Join(temporary, "statecrypt-"+name), text)
	}
	for range 2 {
		o, _, _ := scripted(t, newStore(t), "GET", "plan")
		code, err, told := run(t, o)
		if code != 0 || err != nil || !strings.Contains(told, "statecrypt-full") || strings.Count(told, "statecrypt-") != 1 {
			t.Errorf("%d, %v\n%s", code, err, told)
		}
	}
	left, err := filepath.Glob(filepath.Join(temporary, "statecrypt-*", "*"))
	want := []string{"statecrypt-full/alive", "statecrypt-full/plan", "statecrypt-unmarked/x"}
	for i, name := range left {
		left[i], _ = filepath.Rel(temporary, name)
	}
	if err != nil || !slices.Equal(left, want) {
		t.Errorf("these are left: %q, %v", left, err)
	}
}

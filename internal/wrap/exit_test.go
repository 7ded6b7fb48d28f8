package wrap_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/wraptest"
)

// TestExitCodes: if wrap has an error, no exit code says that all is well, also not that
// of plan -detailed-exitcode.
//
// Promise: Runs under wrap
func TestExitCodes(t *testing.T) {
	t.Parallel()
	mistakes := wraptest.OpenMistakes(t, "exit code")
	for name, c := range testkit.Some(map[string]struct {
		script string
		args   []string
		code   int
	}{
		"there are changes":               {script: "GET exit=2", args: []string{"plan", "-detailed-exitcode"}, code: 2},
		"there are none, and a state":     {script: "GET leave=terraform.tfstate", args: []string{"plan"}, code: 1},
		"there are changes, and a state":  {script: "GET leave=terraform.tfstate exit=2", args: []string{"plan"}, code: 1},
		"there are changes, elsewhere":    {script: `GET reset={"backend":{"type":"s3"}} exit=2`, args: []string{"plan"}, code: 1},
		"there are changes, of no state":  {script: "LOCK={} exit=2", args: []string{"plan"}, code: 1},
		"a failure that has another code": {script: "GET leave=terraform.tfstate exit=3", args: []string{"plan"}, code: 3},
	}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, _, _ := scripted(t, newStore(t), c.script, c.args...)
			code, err, told := run(t, o)
			mistakes.Ended(t, name, told, code, err)
			if code != c.code {
				t.Errorf("got %d, %v; want %d", code, err, c.code)
			}
		})
	}
}

// TestOldPlanGoes: an older plan of the same name is gone, whatever becomes of the new one,
// so that nobody applies it as the new one. What is no plan stays.
//
// Promise: Runs under wrap
func TestOldPlanGoes(t *testing.T) {
	t.Parallel()
	mistakes := wraptest.OpenMistakes(t, "older plan")
	for name, c := range map[string]struct {
		script string
		out    []string
		plain  bool   // without a plan block
		old    string // "archive" if it is empty
		stays  bool
		code   int
	}{
		"not sealed":                {script: "GET save=MADE move=folder,gone exit=2", code: 1},
		"not sealed, and no more":   {script: "GET save=MADE move=folder,gone", code: 1},
		"a sealed one":              {script: "GET save=MADE move=folder,gone exit=2", old: "sealed", code: 1},
		"not made":                  {script: "GET exit=1", code: 1},
		"not made, without sealing": {script: "GET exit=1", plain: true, code: 1},
		"sealed, without sealing":   {script: "GET exit=1", old: "sealed", plain: true, code: 1},
		"killed":                    {script: "GET die", code: 137},
		"the last of two":           {script: "GET exit=1", out: []string{"-out=other", "-out=folder/p"}, code: 1},
		"the first of two":          {script: "GET exit=1", out: []string{"-out=folder/p", "-out=other"}, stays: true, code: 1},
		"none is saved":             {script: "GET", out: []string{"-out=folder/p", "-out="}, stays: true},
		"a state":                   {script: "GET", old: state, stays: true, code: 1},
		"a state, without sealing":  {script: "GET", old: state, plain: true, stays: true, code: 1},
		"something else":            {script: "GET", old: "x", stays: true, code: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.code == 137 {
				needSignals(t)
			}
			out := c.out
			if out == nil {
				out = []string{"-out=folder/p"}
			}
			made := filepath.Join(t.TempDir(), "made")
			write(t, made, planOf(t, "http", "", canary))
			o, dir, _ := scripted(t, newStore(t), strings.Replace(c.script, "MADE", made, 1), append([]string{"plan"}, out...)...)
			settings := wraptest.Settings(t, wraptest.Sealing+"\nplan { method = method.aes_gcm.m }").Plan()
			if !c.plain {
				o.Keys.Plan = settings
			}
			old := c.old
			switch old {
			case "":
				old = archive(t, "old")
			case "sealed":
				sealed, err := settings.Encrypt(t.Context(), []byte(archive(t, "old")))
				if err != nil {
					t.Fatal(err)
				}
				old = string(sealed)
			}
			write(t, filepath.Join(dir, "folder", "p"), old)
			code, err, told := run(t, o)
			mistakes.Ended(t, name, told, code, err)
			if code != c.code {
				t.Errorf("got %d, %v; want %d", code, err, c.code)
			}
			for _, folder := range []string{"folder", "gone"} {
				_, err := os.Stat(filepath.Join(dir, folder, "p"))
				if gone := errors.Is(err, fs.ErrNotExist); gone == (c.stays && folder == "folder") {
					t.Errorf("in %s, the older plan is gone: %t", folder, gone)
				}
			}
		})
	}
}

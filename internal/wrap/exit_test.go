package wrap_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
)

// TestExitCodes: if wrap has an error, no exit code says that all is well, also not that
// of plan -detailed-exitcode.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		args   []string
		code   int
		err    string
	}{
		"there are changes":               {script: "GET exit=2", args: []string{"plan", "-detailed-exitcode"}, code: 2},
		"there are none, and a state":     {script: "GET leave=terraform.tfstate", args: []string{"plan"}, code: 1, err: "was written to"},
		"there are changes, and a state":  {script: "GET leave=terraform.tfstate exit=2", args: []string{"plan"}, code: 1, err: "was written to"},
		"there are changes, elsewhere":    {script: `GET reset={"backend":{"type":"s3"}} exit=2`, args: []string{"plan"}, code: 1, err: `"s3"`},
		"there are changes, of no state":  {script: "LOCK={} exit=2", args: []string{"plan"}, code: 1, err: "no state was asked for"},
		"a failure that has another code": {script: "GET leave=terraform.tfstate exit=3", args: []string{"plan"}, code: 3, err: "was written to"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, _, out := scripted(t, newStore(t), c.script, c.args...)
			code, err := wrap.Run(t.Context(), o)
			if code != c.code || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %d, %v; want %d, %q\n%s", code, err, c.code, c.err, out)
			}
		})
	}
}

// TestOldPlanGoes: an older plan of the same name is gone, whatever becomes of the new one,
// so that nobody applies it as the new one. What is no plan stays.
func TestOldPlanGoes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		out    []string
		plain  bool   // without a plan block
		old    string // "archive" if it is empty
		stays  bool
		code   int
		err    string
	}{
		"not sealed":                {script: "GET save=MADE move=folder,gone exit=2", code: 1, err: "the plan was not saved"},
		"not sealed, and no more":   {script: "GET save=MADE move=folder,gone", code: 1, err: "the plan was not saved"},
		"a sealed one":              {script: "GET save=MADE move=folder,gone exit=2", old: "sealed", code: 1, err: "the plan was not saved"},
		"not made":                  {script: "GET exit=1", code: 1},
		"not made, without sealing": {script: "GET exit=1", plain: true, code: 1},
		"sealed, without sealing":   {script: "GET exit=1", old: "sealed", plain: true, code: 1},
		"killed":                    {script: "GET die", code: 137},
		"the last of two":           {script: "GET exit=1", out: []string{"-out=other", "-out=folder/p"}, code: 1},
		"the first of two":          {script: "GET exit=1", out: []string{"-out=folder/p", "-out=other"}, stays: true, code: 1},
		"none is saved":             {script: "GET", out: []string{"-out=folder/p", "-out="}, stays: true},
		"a state":                   {script: "GET", old: state, stays: true, code: 1, err: "it is a state"},
		"a state, without sealing":  {script: "GET", old: state, plain: true, stays: true, code: 1, err: "it is a state"},
		"something else":            {script: "GET", old: "x", stays: true, code: 1, err: "it is neither a state nor a plan"},
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
			write(t, made, archive(t, canary))
			o, dir, said := scripted(t, newStore(t), strings.Replace(c.script, "MADE", made, 1), append([]string{"plan"}, out...)...)
			settings := wrap.SettingsOf(t, wrap.Sealing+"\nplan { method = method.aes_gcm.m }").Plan()
			if !c.plain {
				o.Plan = settings
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
			code, err := wrap.Run(t.Context(), o)
			if code != c.code || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %d, %v; want %d, %q\n%s", code, err, c.code, c.err, said)
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

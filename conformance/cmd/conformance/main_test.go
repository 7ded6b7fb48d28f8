package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestCommand(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the programs are shell scripts")
	}
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	refuses := file("refuses", "#!/bin/sh\necho \"${1-no}\" >&2\nexit 1\n")
	opens := file("opens", "#!/bin/sh\n[ \"$CASE_KIND\" = terraform_backend_git ] || exit 1\ncat\n") // as tbg_plain is not encrypted
	skips := file("skips", "#!/bin/sh\nexit 77\n")
	for name, c := range map[string]struct {
		args string
		code int
		want []string
	}{
		"passes":  {args: "-run ^tbg_plain$ " + opens, want: []string{" 1 passed, 0 differ as known, 0 skipped, 0 failed\n"}},
		"says so": {args: "-v -run ^tbg_plain$ " + opens, want: []string{"ok      tbg_plain\n", " 1 passed, "}},
		"refuses": {args: "-run ^err_ " + refuses, code: 1, want: []string{" 0 skipped, 0 failed\nnothing was opened\n"}},
		"fails": {args: "-run ^(no_outputs|err_version)$ " + refuses + " argument", code: 1,
			want: []string{"FAILED  no_outputs  the program must open the file (", "but refused: argument\n", " 1 failed\n"}},
		"known": {args: "-known " + file("known", "no_outputs a reason\n") + " -run ^(no_outputs|tbg_plain)$ " + opens,
			want: []string{"differs no_outputs  a reason\n", " 1 passed, 1 differ as known, "}},
		"nothing":       {args: "-run ^no_outputs$ " + skips, code: 1, want: []string{" 1 skipped, 0 failed\nnothing was opened\n"}},
		"no program":    {args: "", code: 2, want: []string{"Usage: "}},
		"no such":       {args: dir + "/none", code: 2, want: []string{"none"}},
		"no such flag":  {args: "-x " + refuses, code: 2, want: []string{"-x", "Usage: "}},
		"no expression": {args: "-run ( " + refuses, code: 2, want: []string{"-run: "}},
		"no such list":  {args: "-known " + dir + "/none " + refuses, code: 2, want: []string{"none"}},
		"a wrong list": {args: "-known " + file("wrong", "nothing a reason\n") + " " + refuses, code: 2,
			want: []string{`"nothing a reason"`, "Usage: "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr strings.Builder
			code := run(t.Context(), strings.Fields(c.args), &stdout, &stderr)
			for _, want := range c.want {
				if !strings.Contains(stdout.String()+stderr.String(), want) {
					t.Errorf("%q is missing", want)
				}
			}
			if code != c.code || (stderr.Len() > 0) != (code == 2) {
				t.Errorf("got %d, %q, %q", code, stdout.String(), stderr.String())
			}
		})
	}
}

// Whoever interrupts it sees no failures that are none.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var stdout, stderr strings.Builder
	if code := run(ctx, []string{os.Args[0]}, &stdout, &stderr); code != 1 || !strings.HasSuffix(stdout.String(), " 0 failed\ninterrupted\n") {
		t.Errorf("got %d, %q, %q", code, stdout.String(), stderr.String())
	}
}

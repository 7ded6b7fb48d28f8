package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/clitest"
)

// on calls the program with a terminal for both outputs, and returns what is shown
// there.
func on(t *testing.T, environ []string, args ...string) (code int, shown string) {
	t.Helper()
	outer, inner := clitest.Terminal(t)
	code = run(t.Context(), args, inner, inner, inner, environ)
	return code, seen(t, outer, inner)
}

// seen returns what was written to a terminal.
func seen(t *testing.T, outer, inner *os.File) string {
	t.Helper()
	_, _ = inner.WriteString("\x04end")
	var seen bytes.Buffer
	for buffer := make([]byte, 4096); !strings.Contains(seen.String(), "\x04end"); {
		n, err := outer.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		seen.Write(buffer[:n])
	}
	shown, _, _ := strings.Cut(strings.ReplaceAll(seen.String(), "\r\n", "\n"), "\x04end")
	return shown
}

// Promise: Files of the command
func TestTerminal(t *testing.T) {
	t.Parallel()
	file := write(t, "a", must(t, onlyOld, plain, "encrypt"))
	config := write(t, "old.hcl", onlyOld)
	odd := write(t, "b", must(t, onlyOld, strings.Replace(plain, `"instances":[{`, `"instances":[{"status":"tainted",`, 1), "encrypt"))
	evil := write(t, "c", must(t, onlyOld, `{"version":4,"outputs":{"x":{"value":"a\u001b[1mb","type":"string"}}}`, "encrypt"))
	mistakes := openMistakes(t, "terminal")
	for name, c := range map[string]struct {
		args string
		env  []string
		want string // "" if it is refused, or nothing is shown
	}{
		"refused":         {args: "decrypt -config " + config + " " + file},
		"without colours": {args: "decrypt " + file, env: []string{"NO_COLOR=1"}},
		"a dumb terminal": {args: "decrypt " + file, env: []string{"TERM=dumb"}},
		"forced":          {args: "decrypt -force -config " + config + " " + file, want: plain},
		"to a file":       {args: "decrypt -config " + config + " -o " + file + "2 " + file},
		"no file":         {args: "inspect"},
		"a key":           {args: "key-provider age -r age1"},
		"secret outputs":  {args: "outputs -sensitive " + file},
		"show secrets":    {args: "show -values -sensitive -config " + config + " " + file},
		"show an output":  {args: "show -output s -sensitive -raw -config " + config + " " + file},
		"show in colour":  {args: "show -config " + config + " " + odd, want: "    \x1b[33mx.y, tainted\x1b[0m\n"},
		"show, no colour": {args: "show -config " + config + " " + odd, env: []string{"NO_COLOR=1"}, want: "    x.y, tainted\n"},
		"show, forced":    {args: "show -values -sensitive -force -config " + config + " " + file, want: ` = "c4n4ry<&>"`},
		"show raw text":   {args: "show -output x -raw -config " + config + " " + evil, want: `a\u001b[1mb`},
		"diff in colour":  {args: "diff -config " + config + " " + file + " " + odd, want: "  \x1b[33m~ x.y (now tainted)\x1b[0m\n"},
		"diff, no colour": {args: "diff -config " + config + " " + file + " " + odd, env: []string{"NO_COLOR=1"},
			want: "  ~ x.y (now tainted)\n"},
		"verify in colour": {args: "verify -config " + config + " " + file, want: "\x1b[32mok\x1b[0m, method.aes_gcm.old\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, shown := on(t, c.env, strings.Fields(c.args)...)
			if c.want == "" {
				mistakes.check(t, name, called{code: code, stderr: strings.ReplaceAll(shown, "\x1b", "ESC")})
			} else if code != 0 || !strings.Contains(shown, c.want) {
				t.Errorf("got %d, %q", code, shown)
			}
		})
	}
}

// TestAsks: only yes gives a lock back.
func TestAsks(t *testing.T) {
	stored := must(t, onlyNew, plain, "encrypt")
	newer := write(t, "kept", strings.Replace(plain, `"serial":7`, `"serial":8`, 1))
	for answer, held := range map[string]string{"yes": "", "no": "4711", "y": "4711", "": "4711"} {
		s := newHTTPStore(t, stored)
		s.lock = "4711"
		settings := write(t, "new.hcl", onlyNew+s.block())
		t.Chdir(filepath.Dir(settings))
		outer, inner := clitest.Terminal(t)
		if _, err := outer.WriteString(answer + "\n"); err != nil {
			t.Fatal(err)
		}
		code := run(t.Context(), []string{"recover", "-force", "-config", settings, newer}, inner, inner, inner, nil)
		if (code == 0) != (held == "") || s.lock != held {
			t.Errorf("%q: %d, and the lock is %q", answer, code, s.lock)
		}
	}
}

// TestProgressOnTerminal: on a terminal, a line about long work replaces the one before, other lines replace it, and it
// is gone in the end.
func TestProgressOnTerminal(t *testing.T) {
	t.Parallel()
	outer, inner := clitest.Terminal(t)
	c := &call{command: command{Name: "verify"}, stderr: inner, environ: []string{"NO_COLOR=1"}}
	w := &work{files: 2, began: time.Unix(0, 0)}
	_, w.traffic = web.WithTraffic(t.Context())
	beats, ended := make(chan time.Time), make(chan struct{})
	stopped := c.follow(w, beats, ended)
	beats <- time.Unix(1, 0)
	beats <- time.Unix(2, 0)
	close(ended)
	<-stopped
	c.say(yellow, "note:", "x")
	c.clear()
	const want = "\rverify: 0 of 2, after 1s\x1b[K\rverify: 0 of 2, after 2s\x1b[K\r\x1b[Knote: x\n"
	if shown := seen(t, outer, inner); shown != want {
		t.Errorf("got %q, want %q", shown, want)
	}
}

// A large file shows that something happens, and the line is gone in the end.
func TestProgress(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector takes a minute for a file of this size")
	}
	t.Parallel()
	file := write(t, "a", strings.Repeat(" ", 60<<20))
	code, shown := on(t, nil, "inspect", file)
	if code != 0 || !strings.HasPrefix(shown, "\rinspect: working on 62 MB\x1b[K") || strings.Count(shown, "\r\x1b[K") != 1 {
		t.Errorf("got %d, %q", code, shown)
	}
	if got := statecrypt(t, "", "", "inspect", file); got.stderr != "" {
		t.Errorf("got %q", got.stderr)
	}
}

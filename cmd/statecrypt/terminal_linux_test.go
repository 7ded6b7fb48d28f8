package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/clitest"
)

// on calls the program with a terminal for both outputs, and returns what is shown
// there.
func on(t *testing.T, environ []string, args ...string) (code int, shown string) {
	t.Helper()
	outer, inner := clitest.Terminal(t)
	code = run(t.Context(), args, strings.NewReader(""), inner, inner, environ)
	_, _ = inner.WriteString("\x04end")
	var seen bytes.Buffer
	for buffer := make([]byte, 4096); !strings.Contains(seen.String(), "\x04end"); {
		n, err := outer.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		seen.Write(buffer[:n])
	}
	shown, _, _ = strings.Cut(strings.ReplaceAll(seen.String(), "\r\n", "\n"), "\x04end")
	return code, shown
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	file := write(t, "a", must(t, onlyOld, plain, "encrypt"))
	config := write(t, "old.hcl", onlyOld)
	for name, c := range map[string]struct {
		args string
		env  []string
		code int
		want string
	}{
		"refused":          {args: "decrypt -config " + config + " " + file, code: 2, want: "\x1b[31merror:\x1b[0m standard output"},
		"without colours":  {args: "decrypt " + file, env: []string{"NO_COLOR=1"}, code: 2, want: "error: standard output is a terminal"},
		"a dumb terminal":  {args: "decrypt " + file, env: []string{"TERM=dumb"}, code: 2, want: "error: standard output is a terminal"},
		"forced":           {args: "decrypt -force -config " + config + " " + file, code: 0, want: plain},
		"to a file":        {args: "decrypt -config " + config + " -o " + file + "2 " + file, code: 0, want: ""},
		"secret outputs":   {args: "outputs -sensitive " + file, code: 2, want: "standard output is a terminal"},
		"verify in colour": {args: "verify -config " + config + " " + file, code: 0, want: "\x1b[32mok\x1b[0m, method.aes_gcm.old\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, shown := on(t, c.env, strings.Fields(c.args)...)
			if code != c.code || !strings.Contains(shown, c.want) || (code != 0 && strings.Contains(shown, canary)) ||
				c.want == "" && shown != "" || strings.HasPrefix(c.want, "error") && strings.Contains(shown, "\x1b") {
				t.Errorf("got %d, %q", code, shown)
			}
		})
	}
}

// A large file shows that something happens, and the line is gone in the end.
func TestProgress(t *testing.T) {
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

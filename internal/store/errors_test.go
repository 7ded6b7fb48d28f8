package store

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestUnlocking: whoever can make a lock chooses its ID. A command that is proposed has that ID as
// its one word, whatever shell it is given to, and runs nothing else.
func TestUnlocking(t *testing.T) {
	t.Parallel()
	const before = "statecrypt wrap -config FILE -- terraform force-unlock "
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell")
	}
	for id, proposed := range map[string]bool{
		"11111111-2222-4333-8444-555555555555": true, "4711": true, "M3XAQ2KCZ5SBWYRPYZ5TAPQ2VE": true, "projects/a:b.c_1": true,
		"$(touch pwned)": false, "`touch pwned`": false, "a;touch pwned": false, `"; touch pwned; "`: false, "'; touch pwned; '": false,
		"!!": false, "%PATH%": false, "a b": false, "-lock=false": false, "": false, "é": false, "a\n": false, "~": false, "*": false,
		strings.Repeat("a", 101): false,
	} {
		text := (&Lock{ID: id, Who: "ann"}).Holder()
		_, after, found := strings.Cut(text, before)
		word, _, ends := strings.Cut(after, " gives it back")
		if found != proposed || found != ends {
			t.Errorf("%q: %s", id, text)
		}
		if !found {
			continue
		}
		cmd := exec.CommandContext(t.Context(), sh, "-c", "printf %s. "+word)
		cmd.Dir = t.TempDir()
		out, err := cmd.CombinedOutput()
		if left, _ := os.ReadDir(cmd.Dir); err != nil || string(out) != id+"." || len(left) > 0 {
			t.Errorf("%q: the shell has %q, %v, and made %v", id, out, err, left)
		}
	}
}

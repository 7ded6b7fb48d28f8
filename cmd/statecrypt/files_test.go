package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// TestOutputStreams: -o never makes a file of a name that means a stream, and never
// takes away a file that somebody has open.
func TestOutputStreams(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil || runtime.GOOS != "linux" {
		t.Skip("there is no bash, or another /dev")
	}
	bin := filepath.Dir(built(t))
	sealed := must(t, onlyOld, plain, "encrypt")
	for name, c := range map[string]struct {
		script    string
		code      int
		log, want string // what the log and standard error say
	}{
		"a dash":                  {script: "decrypt -o - sealed", log: "before\n" + plain + "after\n"},
		"/dev/stdout":             {script: "decrypt -o /dev/stdout sealed", log: "before\n" + plain + "after\n"},
		"/proc/self/fd/1":         {script: "decrypt -o /proc/self/fd/1 sealed", log: "before\n" + plain + "after\n"},
		"the log by its name":     {script: "decrypt -o log sealed", log: "before\n" + plain + "after\n"},
		"a link to /dev/stdout":   {script: "decrypt -o link sealed", log: "before\n" + plain + "after\n"},
		"another descriptor":      {script: "decrypt -o /dev/fd/3 sealed 3>>other", code: 1, log: "before\nafter\n", want: "a process has open"},
		"a pipe":                  {script: "decrypt -o >(cat) sealed", code: 1, log: "before\nafter\n", want: "cannot be written"},
		"a device":                {script: "decrypt -o /dev/full sealed", code: 1, log: "before\nafter\n", want: "it is not a regular file"},
		"a variable that is none": {script: `decrypt -o "$OUT" sealed`, code: 2, log: "before\nafter\n", want: "-o requires the name of a file"},
		"nothing":                 {script: "decrypt sealed", log: "before\n" + plain + "after\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			in := func(name string) string { return filepath.Join(dir, name) }
			write(t, in("sealed"), sealed)
			write(t, in("other"), "other\n")
			if err := os.Symlink("/dev/stdout", in("link")); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), bash, "-c",
				"exec >> log 2>> errors; echo before; statecrypt "+c.script+"; code=$?; echo after; exit $code")
			cmd.Dir = dir
			cmd.Env = append(world.World{}.Environ().Pairs(), "PATH="+bin+":"+os.Getenv("PATH"), "TF_ENCRYPTION="+onlyOld)
			_ = cmd.Run()
			problems := read(t, in("errors"))
			if code := cmd.ProcessState.ExitCode(); code != c.code || read(t, in("log")) != c.log || !strings.Contains(problems, c.want) {
				t.Errorf("got %d, %s\n%s", code, read(t, in("log")), problems)
			}
			if read(t, in("other")) != "other\n" {
				t.Error("a file that was open was changed")
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 5 {
				t.Errorf("these were left: %v, %v", left, err)
			}
		})
	}
}

// A file above the limit is refused by a message that advises nothing that the command
// does not have.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	name := write(t, "large", "")
	if err := os.Truncate(name, 3<<30); err != nil {
		t.Skip(err)
	}
	got := statecrypt(t, onlyOld, "", "decrypt", name)
	if got.code != exitFailure || !strings.Contains(got.stderr, "larger than 2147483647 bytes\n") {
		t.Errorf("got %+v", got)
	}
}

package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/world"
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

// A program that is killed while it writes leaves nothing: until all is written, no
// name leads to it.
func TestKilledWhileWriting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if f := unnamed(dir); f == nil {
		t.Skip("there are no files without a name here")
	} else {
		_ = f.Close()
	}
	file := write(t, filepath.Join(dir, "x"), "before")
	cmd := exec.CommandContext(t.Context(), linked(t, replaces), file, plain)
	out, err := cmd.StdoutPipe()
	in, errIn := cmd.StdinPipe()
	if err := errors.Join(err, errIn, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if text, err := bufio.NewReader(out).ReadString('\n'); err != nil || text != written {
		t.Fatalf("got %q, %v", text, err)
	}
	_ = cmd.Process.Kill()
	if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("it ended with %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || read(t, file) != "before" {
		t.Errorf("these were left: %v, %v", left, err)
	}
}

// replaces is the name under which the program of the tests replaces the file of the
// first argument by the second, and waits before it gives the new file a name.
const (
	replaces = "replaces"
	written  = "written\n"
)

// waiting is a context that is looked at when all is written.
type waiting struct{ context.Context }

func (waiting) Err() error {
	_, _ = os.Stdout.WriteString(written)
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
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

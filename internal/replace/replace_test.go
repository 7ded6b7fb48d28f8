package replace

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A program with this variable replaces the file of its first argument, and waits
// before it gives the new file a name.
const (
	replaces = "REPLACE_TEST_REPLACES"
	written  = "written\n"
)

func TestMain(m *testing.M) {
	if os.Getenv(replaces) != "" {
		if err := File(waiting{context.Background()}, os.Args[1], []byte("after"), nil); err != nil {
			_, _ = os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		return
	}
	m.Run()
}

// There is a file beside it meanwhile, also if its name is as long as names may be.
func TestLongestName(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), strings.Repeat("ä", 127))
	for _, text := range []string{"before", "after"} {
		if err := File(t.Context(), name, []byte(text), nil); err != nil || read(t, name) != text {
			t.Errorf("%v", err)
		}
	}
	if err := os.WriteFile(filepath.Join(t.TempDir(), hidden(filepath.Base(name))+rand.Text()), nil, 0o600); err != nil {
		t.Error(err) // where no file is without a name
	}
}

// A program that is killed while it writes leaves nothing: until all is written, no
// name leads to it.
//
// Promise: Files of the command
func TestKilledWhileWriting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if f := unnamed(dir); f == nil {
		t.Skip("there are no files without a name here")
	} else {
		_ = f.Close()
	}
	file := write(t, filepath.Join(dir, "x"), "before")
	cmd := exec.CommandContext(t.Context(), os.Args[0], file) //nolint:gosec // this program
	cmd.Env = append(os.Environ(), replaces+"=1")
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

// waiting is a context that is looked at when all is written.
type waiting struct{ context.Context }

func (waiting) Err() error {
	_, _ = os.Stdout.WriteString(written)
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// A state that someone writes while it is replaced is not lost.
func TestChanged(t *testing.T) {
	t.Parallel()
	name := write(t, filepath.Join(t.TempDir(), "a"), "old")
	before, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	write(t, name, "new")
	if err := os.Chtimes(name, time.Time{}, before.ModTime().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := File(t.Context(), name, []byte("x"), before); err == nil || !strings.Contains(err.Error(), "changed the file in the meantime") ||
		read(t, name) != "new" {
		t.Errorf("got %v", err)
	}
}

// TestLinks: the file that a link leads to is replaced if the user names the link, and the link is if it
// has the name of a file of our own.
func TestLinks(t *testing.T) {
	t.Parallel()
	for name, replaces := range map[string]func(link string) error{
		"file": func(link string) error { return File(t.Context(), link, []byte("after"), nil) },
		"name": func(link string) error { return Name(t.Context(), link, []byte("after")) },
		"in": func(link string) error {
			dir, err := os.OpenRoot(filepath.Dir(link))
			if err != nil {
				return err
			}
			defer dir.Close()
			return In(t.Context(), dir, filepath.Base(link), []byte("after"))
		},
	} {
		dir := t.TempDir()
		there, link := write(t, filepath.Join(t.TempDir(), "there"), "before"), filepath.Join(dir, "link")
		if err := os.Symlink(there, link); err != nil {
			t.Skip(err)
		}
		if err := replaces(link); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		info, err := os.Lstat(link)
		followed := name == "file"
		if err != nil || info.Mode()&os.ModeSymlink != 0 != followed || read(t, link) != "after" || (read(t, there) == "after") != followed {
			t.Errorf("%s: the link is %v, %v, and leads to %q, or led to %q", name, info, err, read(t, link), read(t, there))
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("%s: these are left: %v, %v", name, entries, err)
		}
		if Name(t.Context(), dir, nil) == nil {
			t.Errorf("%s: a folder was replaced", name)
		}
	}
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

//go:build unix

package file

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
)

// None of these may be read, and opening a pipe that nobody writes to would
// hang.
func TestSpecialFiles(t *testing.T) {
	dir, err := os.MkdirTemp("", "s") // the name of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	pipe, socket := filepath.Join(dir, "pipe"), filepath.Join(dir, "socket")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	says := sourcetest.OpenMistakes(t, "file, no regular files")
	for _, path := range []string{pipe, socket, "/dev/zero", "/dev/null"} {
		begin := time.Now()
		got, err := read(t, pathAttr(path), "default")
		if err == nil {
			t.Fatalf("%s: got %q", path, got)
		}
		says.Check(t, filepath.Base(path), strings.ReplaceAll(err.Error(), dir, "/dir"))
		if time.Since(begin) > time.Minute {
			t.Errorf("%s: this took %s", path, time.Since(begin))
		}
	}
}

// A file may become a pipe between the look and the opening.
func TestOpenFlagsDoNotWait(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	opened := make(chan error, 1)
	go func() {
		f, err := os.OpenFile(pipe, openFlags, 0)
		if err == nil {
			err = f.Close()
		}
		opened <- err
	}()
	select {
	case err := <-opened:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("opening a pipe waits for a writer")
	}
}

// Files of /proc are regular, hold something, and say that they are empty.
func TestUnknownSize(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("there is no /proc")
	}
	if got, err := read(t, pathAttr("/proc/self/status"), "default"); err != nil || got == "" {
		t.Errorf("got %q, %v", got, err)
	}
}

//go:build unix

package wrap_test

import (
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap"
)

// needSignals has interrupts arrive: whoever runs the tests may ignore them, and
// with it all that it starts, as test2json does.
func needSignals(t *testing.T) {
	t.Helper()
	caught := make(chan os.Signal, 9)
	signal.Notify(caught, syscall.SIGINT, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(caught) })
}

func signalSelf(s syscall.Signal) { _ = syscall.Kill(os.Getpid(), s) }

// hangUp sends a hangup to a process.
func hangUp(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err == nil {
		err = syscall.Kill(n, syscall.SIGHUP)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// interruptWhen interrupts this process when someone writes to the pipe that it
// makes at path.
func interruptWhen(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		f, err := os.Open(path)
		if err != nil {
			return
		}
		defer f.Close()
		_, _ = io.ReadAll(f)
		signalSelf(syscall.SIGINT)
	}()
}

// TestInterruptedWhileAsked: a signal that arrives while wrap asks the program for the hash of the block ends the run.
//
// Promise: Runs under wrap
func TestInterruptedWhileAsked(t *testing.T) {
	needSignals(t)
	o, dir, out := scripted(t, newStore(t), "ready GET", "apply")
	pipe := filepath.Join(dir, "asked")
	interruptWhen(t, pipe)
	o.Environ = append(o.Environ, "WRAP_TEST_ASKED="+pipe)
	code, err := wrap.Run(t.Context(), o)
	if code != 1 || err == nil || !strings.Contains(err.Error(), "interrupt signal received") || out.String() != "" {
		t.Errorf("%d, %v, and the child was run: %s", code, err, out)
	}
}

// A pipe in the place of a plan has nobody who writes to it, and is not waited for.
func TestPipeForAPlan(t *testing.T) {
	t.Parallel()
	o, dir, out := scripted(t, newStore(t), "ready GET", "apply", "pipe")
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := wrap.Run(t.Context(), o)
		ended <- err
	}()
	select {
	case err := <-ended:
		if err == nil || out.String() != "" {
			t.Errorf("%v\n%s", err, out)
		}
	case <-time.After(time.Minute):
		t.Error("wrap waits for a writer")
	}
}

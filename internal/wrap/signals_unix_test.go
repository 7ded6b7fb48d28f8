//go:build unix

package wrap_test

import (
	"io"
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// needSignals has interrupts arrive: whoever runs the tests may ignore them, and
// with it all that it starts, as test2json does.
func needSignals(t *testing.T) {
	t.Helper()
	caught := make(chan os.Signal, 9)
	signal.Notify(caught, syscall.SIGINT)
	t.Cleanup(func() { signal.Stop(caught) })
}

func signalSelf(s syscall.Signal) { _ = syscall.Kill(os.Getpid(), s) }

// interruptWhen interrupts this process when somebody writes to the pipe that it
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

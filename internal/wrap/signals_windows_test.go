package wrap_test

import (
	"syscall"
	"testing"
)

func needSignals(t *testing.T) {
	t.Helper()
	t.Skip("there is no way to signal one process")
}

func signalSelf(syscall.Signal) {}

func interruptWhen(*testing.T, string) {}

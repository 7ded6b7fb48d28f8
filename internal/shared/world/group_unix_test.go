//go:build unix

package world_test

import (
	"context"
	"testing"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// A program that does not listen is killed together with its children, one of
// which holds the pipe of its output.
func TestDeafProgram(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := world.Command(ctx, world.World{}.Environ(), "sh", "-c", "trap '' TERM; echo started; sleep 600 & wait")
	started := make(chan struct{}, 1)
	cmd.Stdout = writer(func() { started <- struct{}{} })
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-started
	begin := time.Now()
	cancel()
	if err := cmd.Wait(); err == nil {
		t.Error("it ended well")
	}
	if took := time.Since(begin); took < 500*time.Millisecond || took > time.Minute {
		t.Errorf("it took %v, want one second and what a slow machine adds", took)
	}
}

type writer func()

func (w writer) Write(p []byte) (int, error) { w(); return len(p), nil }

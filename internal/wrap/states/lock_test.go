package states

import (
	"context"
	"errors"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// slow is a state whose lock is requested while an interrupt arrives. It answers when the user has been told.
type slow struct {
	store.State
	interrupt func()
	told      chan string
	released  bool
}

func (s *slow) Lock(context.Context, store.Lock) error {
	s.interrupt()
	<-s.told
	return nil
}

func (s *slow) Unlock(context.Context, string) error {
	s.released = true
	return nil
}

// TestInterruptedLock: a request for a lock is not cancelled, so the user is told why nothing happens yet. The lock is
// then released.
func TestInterruptedLock(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := &slow{interrupt: cancel, told: make(chan string)}
	b := &Backend{State: s, Properties: store.Properties{HasLocks: true}, say: func(text string) { s.told <- text }}
	err := b.underLock(ctx, "test", func() error {
		t.Error("it works")
		return nil
	})
	if !errors.Is(err, context.Canceled) || !s.released {
		t.Errorf("%v, released: %t", err, s.released)
	}
}

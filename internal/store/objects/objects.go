// Package objects holds the code that cloud object stores share: a state in one object, a lock in another object or
// elsewhere, and a test that the store obeys conditions. After a request whose response was lost, the store is asked
// whether the request has succeeded.
package objects

import (
	"context"
	"errors"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// MaxTries is how many times a request is repeated if it conflicts with another process.
const MaxTries = 5

// Pause waits 100 ms, so that another process can finish.
func Pause(ctx context.Context) error { return store.Pause(ctx, 100*time.Millisecond) }

// Within returns a context with a time limit for one request, including retries. The limit grows with size, the number
// of bytes to send.
func Within(ctx context.Context, patience time.Duration, size int) (context.Context, context.CancelFunc) {
	if patience <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, patience+TimeFor(size), &store.UnansweredError{Err: errors.New("the store takes too long")})
}

// TimeFor returns the time allowed for sending size bytes.
func TimeFor(size int) time.Duration {
	const slowest = 100 << 10 // bytes per second
	return time.Duration(size/slowest) * time.Second
}

// Requests sends the requests for a state object.
type Requests interface {
	// Get returns the object and its version, or an empty version if there is no object. The object may have at most
	// limit bytes.
	Get(ctx context.Context, name string, limit int64) (data []byte, version string, err error)

	// Put replaces the object if it is still the version that was read. If read is empty, it creates the object. If
	// the condition is not met, Put returns [store.ErrChanged].
	Put(ctx context.Context, name string, data []byte, read string) (version string, err error)

	// Delete deletes the object if it still has this version.
	Delete(ctx context.Context, name, version string) error

	// Prove returns an error if the store ignores conditions.
	Prove(ctx context.Context) error
}

// State is a state in one object. It implements [store.State], except for String.
type State struct {
	Requests Requests
	Name     string // the object name
	Path     string // the path recorded in locks
	Limit    int64  // the maximum object size, in bytes
	Locks
}

// Read returns the state. Like both CLIs, it treats an empty object as no state.
func (s *State) Read(ctx context.Context) ([]byte, store.Version, error) {
	data, version, err := s.Requests.Get(ctx, s.Name, s.Limit)
	if len(data) == 0 {
		data = nil
	}
	return data, store.Version(version), err
}

// Write replaces the object if it is still the version that was read.
func (s *State) Write(ctx context.Context, data []byte, read store.Version) (store.Version, error) {
	if err := s.MayChange(ctx); err != nil {
		return "", err
	}
	next, err := s.Requests.Put(ctx, s.Name, data, string(read))
	return store.Version(next), err
}

// Remove deletes the object if it is still the version that was read. Some stores have no conditional delete, so
// Remove first reads the object and compares the version.
func (s *State) Remove(ctx context.Context, read store.Version) error {
	err := s.MayChange(ctx)
	if err == nil {
		err = s.Unchanged(ctx, read)
	}
	if err != nil || read == "" {
		return err
	}
	return s.Requests.Delete(ctx, s.Name, string(read))
}

// Unchanged returns an error if the object is not the version that was read.
func (s *State) Unchanged(ctx context.Context, read store.Version) error {
	_, now, err := s.Read(ctx)
	if err == nil && now != read {
		err = store.ErrChanged
	}
	return err
}

// MayChange returns an error if the store ignores conditions, or if the locks do not allow a write.
func (s *State) MayChange(ctx context.Context) error {
	if err := s.Requests.Prove(ctx); err != nil {
		return err
	}
	return s.Locks.MayChange(ctx)
}

// Ready returns an error if the store ignores the conditions that locks and writes rely on.
func (s *State) Ready(ctx context.Context) error { return s.Requests.Prove(ctx) }

// Lock takes the locks.
func (s *State) Lock(ctx context.Context, lock store.Lock) error {
	return s.Take(ctx, lock.At(s.Path))
}

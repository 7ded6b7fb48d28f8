// Package memo shares work among callers that ask for the same result at the same time, and keeps the
// results.
package memo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// grace is the time that the last caller waits for cancelled work. It is slightly longer than the time that a
// stopped program has to clean up (see package world).
const grace = 1500 * time.Millisecond

// Memo remembers results by key, until there are too many. The zero value is ready to use. A Memo must not be
// copied after first use.
type Memo[K comparable, V any] struct {
	// Limit is the maximum number of results to remember; 0 means no limit. Above the limit, the least
	// recently used results are forgotten.
	Limit int

	// Forgotten is called with each successful result that is forgotten. Callers may still be using the
	// result. Forgotten may be nil.
	Forgotten func(V)

	mu    sync.Mutex
	calls map[K]*call[V] // calls that are running or were successful
	asked int            // how often Do has been called
}

// call is one run of the work. Memo.mu guards waiters and asked. The fields result, err and panicked are
// written before done is closed, and read only afterwards.
type call[V any] struct {
	waiters  int
	asked    int // the value of Memo.asked when the result was last requested
	cancel   context.CancelFunc
	done     chan struct{}
	result   V
	err      error
	panicked error // includes the stack of the goroutine that panicked
}

// Do returns the remembered result for key. If there is none, it waits for running work on the same key, or
// else starts the work. All callers get the same V and must not modify it.
//
// The context passed to work has the values of the first caller's context, but not its cancellation or
// deadline, because other callers may wait longer. That context is cancelled when the last caller stops
// waiting; the result is then dropped, and the next caller starts the work again. The last caller waits a
// short time for the cancelled work to end, so that the work can clean up before the process exits. An error
// is returned to all waiting callers, but is not remembered.
//
// If a caller's ctx ends before the work does, Do returns the cause. If work panics, all waiting callers
// panic. Work may call Do for another key, but circular calls would wait forever.
func (m *Memo[K, V]) Do(ctx context.Context, key K, work func(context.Context) (V, error)) (V, error) {
	var none V
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	c := m.join(ctx, key, work)
	select {
	case <-c.done:
		return c.outcome()
	case <-ctx.Done():
	}
	if m.leave(key, c) {
		select {
		case <-c.done:
		case <-time.After(grace):
		}
	}
	return none, context.Cause(ctx)
}

// Fresh works like [Memo.Do], for results that expire, such as tokens. If fresh returns false for the
// remembered result, Fresh drops the result and does the work once more.
func (m *Memo[K, V]) Fresh(ctx context.Context, key K, fresh func(V) bool, work func(context.Context) (V, error)) (V, error) {
	v, err := m.Do(ctx, key, work)
	if err != nil || fresh(v) {
		return v, err
	}
	m.mu.Lock()
	if c, ok := m.calls[key]; ok && c.ended() && !fresh(c.result) { // another caller may already have replaced it
		m.forget(key, c)
	}
	m.mu.Unlock()
	return m.Do(ctx, key, work)
}

func (m *Memo[K, V]) join(ctx context.Context, key K, work func(context.Context) (V, error)) *call[V] {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.calls[key]
	if !ok {
		var own context.Context
		c = &call[V]{done: make(chan struct{})}
		own, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
		if m.calls == nil {
			m.calls = make(map[K]*call[V])
		}
		m.calls[key] = c
		go m.run(own, key, c, work)
	}
	c.waiters++
	m.asked++
	c.asked = m.asked
	if !ok && m.Limit > 0 && len(m.calls) > m.Limit {
		m.shrink()
	}
	return c
}

// shrink forgets the least recently used results until three quarters of the limit remain. The caller must
// hold m.mu.
func (m *Memo[K, V]) shrink() {
	oldest := slices.SortedFunc(maps.Keys(m.calls), func(a, b K) int { return m.calls[a].asked - m.calls[b].asked })
	for _, key := range oldest[:len(oldest)-m.Limit*3/4] {
		if c := m.calls[key]; c.ended() {
			m.forget(key, c)
		}
	}
}

// Clear forgets all results. Running work continues for the callers that wait for it, but its result is not
// remembered.
func (m *Memo[K, V]) Clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, c := range m.calls {
		m.forget(key, c)
	}
}

// leave removes one waiter. If it was the last one, leave cancels the work and returns true. It also forgets
// the work immediately, so that no other caller can join cancelled work.
func (m *Memo[K, V]) leave(key K, c *call[V]) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	c.waiters--
	if c.waiters > 0 || c.ended() {
		return false
	}
	c.cancel()
	m.forget(key, c)
	return true
}

// forget removes c, unless newer work has taken its key. The caller must hold m.mu.
func (m *Memo[K, V]) forget(key K, c *call[V]) {
	if m.calls[key] != c {
		return
	}
	delete(m.calls, key)
	if m.Forgotten != nil && c.ended() && c.err == nil && c.panicked == nil {
		m.Forgotten(c.result)
	}
}

func (m *Memo[K, V]) run(ctx context.Context, key K, c *call[V], work func(context.Context) (V, error)) {
	// This error remains if work ends its goroutine without returning or panicking.
	c.err = errors.New("the shared work ended without a result")
	defer func() {
		if reason := recover(); reason != nil {
			c.panicked = panicError(reason, debug.Stack())
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if c.err != nil {
			m.forget(key, c)
		}
		close(c.done)
		c.cancel()
	}()
	c.result, c.err = work(ctx)
}

func (c *call[V]) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func (c *call[V]) outcome() (V, error) {
	if c.panicked != nil {
		panic(c.panicked)
	}
	return c.result, c.err
}

// panicError returns an error that carries a panic from one goroutine to another.
func panicError(reason any, stack []byte) error {
	const text = "panic in shared work: "
	if err, ok := reason.(error); ok {
		return fmt.Errorf(text+"%w\n\n%s", err, stack)
	}
	return fmt.Errorf(text+"%v\n\n%s", reason, stack)
}

package memo

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

type keyOfValue struct{}

func TestOneRunForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Memo[string, int]
		var runs atomic.Int32
		proceed := make(chan struct{})
		work := func(ctx context.Context) (int, error) {
			runs.Add(1)
			<-proceed
			return ctx.Value(keyOfValue{}).(int), nil
		}
		ctx := context.WithValue(t.Context(), keyOfValue{}, 7)
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if got, err := m.Do(ctx, "a", work); got != 7 || err != nil {
					t.Errorf("got %d, %v", got, err)
				}
			})
		}
		synctest.Wait()
		close(proceed)
		all.Wait()
		if got, err := m.Do(ctx, "a", work); got != 7 || err != nil {
			t.Errorf("afterwards: got %d, %v", got, err)
		}
		if n := runs.Load(); n != 1 {
			t.Errorf("the work ran %d times", n)
		}
	})
}

// The first caller's cancellation ends its own wait and nobody else's.
func TestOneCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Memo[string, string]
		proceed := make(chan struct{})
		work := func(ctx context.Context) (string, error) {
			<-proceed
			return "done", ctx.Err()
		}
		gone := errors.New("gone home")
		first, cancel := context.WithCancelCause(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := m.Do(first, "a", work); !errors.Is(err, gone) {
				t.Errorf("first: got %v", err)
			}
		})
		synctest.Wait()
		all.Go(func() {
			if got, err := m.Do(t.Context(), "a", work); got != "done" || err != nil {
				t.Errorf("second: got %q, %v", got, err)
			}
		})
		synctest.Wait()
		cancel(gone)
		synctest.Wait()
		close(proceed)
		all.Wait()
	})
}

// Work that the last waiter has left is cancelled. Who comes before it has
// returned gets fresh work, whose result the old one doesn't touch.
func TestLastCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Memo[string, string]
		ctx, cancel := context.WithCancel(t.Context())
		cancelled, linger := make(chan struct{}), make(chan struct{})
		go m.Do(ctx, "a", func(ctx context.Context) (string, error) {
			<-ctx.Done()
			close(cancelled)
			<-linger
			return "stale", ctx.Err()
		})
		synctest.Wait()
		cancel()
		<-cancelled

		fresh := func(ctx context.Context) (string, error) { return "fresh", ctx.Err() }
		if got, err := m.Do(t.Context(), "a", fresh); got != "fresh" || err != nil {
			t.Errorf("late joiner: got %q, %v", got, err)
		}
		close(linger)
		synctest.Wait()
		if got, err := m.Do(t.Context(), "a", nil); got != "fresh" || err != nil {
			t.Errorf("afterwards: got %q, %v", got, err)
		}
	})
}

// The last caller stays until the work has cleaned up, though not for ever, and
// the others do not wait for that.
func TestLastCallerSeesTheEnd(t *testing.T) {
	for cleanup, want := range map[time.Duration]time.Duration{time.Second: time.Second, time.Hour: grace} {
		synctest.Test(t, func(t *testing.T) {
			var m Memo[string, string]
			begin := time.Now()
			last, cancel := context.WithCancel(t.Context())
			first, leave := context.WithCancel(t.Context())
			work := func(ctx context.Context) (string, error) {
				<-ctx.Done()
				time.Sleep(cleanup)
				return "", ctx.Err()
			}
			var all sync.WaitGroup
			for ctx, end := range map[context.Context]time.Duration{first: 0, last: want} {
				all.Go(func() {
					if _, err := m.Do(ctx, "a", work); !errors.Is(err, context.Canceled) {
						t.Errorf("got %v", err)
					}
					if took := time.Since(begin); took != end {
						t.Errorf("left after %v, want %v", took, end)
					}
				})
			}
			synctest.Wait()
			leave()
			synctest.Wait()
			cancel()
			all.Wait()
			time.Sleep(cleanup) // as every goroutine of a bubble has to end
		})
	}
}

// A result stays even when the last waiter left at the moment it came.
func TestLeavingAfterTheEnd(t *testing.T) {
	var m Memo[string, string]
	work := func(context.Context) (string, error) { return "done", nil }
	if _, err := m.Do(t.Context(), "a", work); err != nil {
		t.Fatal(err)
	}
	m.leave("a", m.calls["a"])
	if got, err := m.Do(t.Context(), "a", nil); got != "done" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestErrorsAreForgotten(t *testing.T) {
	var m Memo[string, string]
	broken := errors.New("broken")
	if _, err := m.Do(t.Context(), "a", func(context.Context) (string, error) { return "", broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	got, err := m.Do(t.Context(), "a", func(context.Context) (string, error) { return "mended", nil })
	if got != "mended" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestWorkAsksForAnotherKey(t *testing.T) {
	var m Memo[int, int]
	var sum func(n int) func(context.Context) (int, error)
	sum = func(n int) func(context.Context) (int, error) {
		return func(ctx context.Context) (int, error) {
			if n == 0 {
				return 0, nil
			}
			rest, err := m.Do(ctx, n-1, sum(n-1))
			return n + rest, err
		}
	}
	if got, err := m.Do(t.Context(), 10, sum(10)); got != 55 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
}

// Everybody who waits learns of a panic, and the key is usable again.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Memo[string, string]
		cause := errors.New("no such luck")
		proceed := make(chan struct{})
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				defer func() {
					err, _ := recover().(error)
					if !errors.Is(err, cause) || !strings.Contains(err.Error(), "memo_test.go") {
						t.Errorf("recovered %v, want the cause and its stack", err)
					}
				}()
				m.Do(t.Context(), "a", func(context.Context) (string, error) { <-proceed; panic(cause) })
			})
		}
		synctest.Wait()
		close(proceed)
		all.Wait()
		if got, err := m.Do(t.Context(), "a", func(context.Context) (string, error) { return "x", nil }); got != "x" || err != nil {
			t.Errorf("afterwards: got %q, %v", got, err)
		}
	})
}

func TestWorkEndsItsGoroutine(t *testing.T) {
	var m Memo[string, string]
	_, err := m.Do(t.Context(), "a", func(context.Context) (string, error) { runtime.Goexit(); return "", nil })
	if err == nil || len(m.calls) != 0 {
		t.Errorf("got %v, remembered %d", err, len(m.calls))
	}
}

// Callers that come and go at random neither hang nor see a result of
// cancelled work. The race detector and synctest's own check for goroutines
// that are left behind do the rest.
func TestComingAndGoing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Memo[int, int]
		var all sync.WaitGroup
		for i := range 400 {
			all.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if i%2 == 0 {
					go cancel()
				}
				_, err := m.Do(ctx, i%5, func(ctx context.Context) (int, error) {
					runtime.Gosched()
					return i, ctx.Err()
				})
				if err != nil && ctx.Err() == nil {
					t.Errorf("caller %d: %v", i, err)
				}
			})
		}
		all.Wait()
	})
}

// What has gone stale is made again, once for everybody.
func TestFresh(t *testing.T) {
	t.Parallel()
	var m Memo[string, int]
	var made atomic.Int64
	work := func(context.Context) (int, error) { return int(made.Add(1)), nil }
	least := func(n int) func(int) bool { return func(v int) bool { return v >= n } }
	for i, c := range []struct{ least, want int }{{1, 1}, {1, 1}, {2, 2}, {1, 2}, {9, 3}, {3, 3}} {
		if got, err := m.Fresh(t.Context(), "a", least(c.least), work); err != nil || got != c.want {
			t.Errorf("%d: got %d, %v, want %d", i, got, err, c.want)
		}
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if got, err := m.Fresh(t.Context(), "a", least(4), work); err != nil || got != 4 {
				t.Errorf("got %d, %v, want 4", got, err)
			}
		})
	}
	all.Wait()
	failed := errors.New("it failed")
	if _, err := m.Fresh(t.Context(), "a", least(9), func(context.Context) (int, error) { return 0, failed }); !errors.Is(err, failed) {
		t.Errorf("got %v, want %v", err, failed)
	}
}

func TestLimit(t *testing.T) {
	var forgotten []int
	m := Memo[int, int]{Limit: 8, Forgotten: func(v int) { forgotten = append(forgotten, v) }}
	runs := 0
	ask := func(key int) {
		t.Helper()
		if got, err := m.Do(t.Context(), key, func(context.Context) (int, error) { runs++; return key * 10, nil }); got != key*10 || err != nil {
			t.Fatalf("got %d, %v", got, err)
		}
	}
	for key := range 100 {
		ask(key)
		ask(0) // which keeps it
		if len(m.calls) > m.Limit {
			t.Fatalf("%d results are remembered", len(m.calls))
		}
	}
	if runs != 100 || len(forgotten) != 100-len(m.calls) || slices.Contains(forgotten, 0) || slices.Contains(forgotten, 990) {
		t.Errorf("%d runs, %v forgotten", runs, forgotten)
	}
	m.Clear()
	if slices.Sort(forgotten); len(forgotten) != 100 || len(slices.Compact(forgotten)) != 100 {
		t.Errorf("after Clear, %v forgotten", forgotten)
	}
	if ask(0); runs != 101 {
		t.Error("Clear has not forgotten it")
	}
}

// What is under way while all is forgotten reaches those who wait for it.
func TestClearUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSecrets(2)
		proceed := make(chan struct{})
		var runs atomic.Int32
		work := func(context.Context) ([]byte, error) {
			runs.Add(1)
			<-proceed
			return []byte("key"), nil
		}
		var all sync.WaitGroup
		all.Go(func() {
			if got, err := s.Do(t.Context(), "a", work); string(got) != "key" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
		synctest.Wait()
		s.Clear()
		close(proceed)
		all.Wait()
		if _, err := s.Do(t.Context(), "a", work); err != nil || runs.Load() != 2 {
			t.Errorf("%d runs, %v", runs.Load(), err)
		}
	})
}

func TestSecretsAreOverwritten(t *testing.T) {
	s := NewSecrets(2)
	original := []byte("key")
	own, err := s.Do(t.Context(), "a", func(context.Context) ([]byte, error) { return original, nil })
	if err != nil {
		t.Fatal(err)
	}
	kept := s.memo.calls["a"].result
	own[0] = 'X' // belongs to the caller
	if again, err := s.Do(t.Context(), "a", nil); string(again) != "key" || err != nil {
		t.Errorf("got %q, %v", again, err)
	}
	s.Clear()
	if string(kept.bytes) != "\x00\x00\x00" || string(original) != "key" {
		t.Errorf("%q is left, and %q of what it was made from", kept.bytes, original)
	}
	if _, ok := kept.clone(); ok {
		t.Error("an overwritten key is handed out")
	}
}

package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"
)

// Suite stands between a client and its server, and runs the table of faults.
type Suite struct {
	Options

	// Server makes the faithful server, which gives Want to whoever has the
	// credentials.
	Server func(t *testing.T) http.Handler
	Want   []byte

	// Client makes the client of the server at f.URL. It trusts f.CA, and gives up
	// after f.Patience.
	Client func(t *testing.T, f *Front) Client

	// Service adds the rows of a key service; it may be nil.
	Service *Service

	// Reads reports whether a request is one that a read makes.
	Reads func(r *http.Request, body []byte) bool

	// Strays allows requests without secrets to another origin, after a redirect.
	Strays bool

	// Check looks at the error of a fault. With refusal, the service says that
	// it has no such key for this caller.
	Check func(t *testing.T, err error, refusal bool)

	// Sees is what the user sees of each fault: a part of the error, or [Works],
	// [Cut] or [Other]. If the moment of a reset decides what the system reports,
	// the parts that may be seen stand with " | " between them. Cannot says why a
	// fault cannot befall this client, or why its end is not waited for. Each row
	// is in one of the two, unless the caller gives up in it.
	Sees, Cannot map[string]string

	// Late names the rows that nothing but the patience of this client ends,
	// besides the stalls.
	Late []string
}

// Client asks the server once.
type Client struct {
	Ask     func(ctx context.Context) ([]byte, error)
	Secrets Secrets // must appear in no error, and nowhere but at the server
}

// Secrets are what nobody may be shown.
type Secrets []string

// What is seen in place of an error.
const (
	Works = "the answer" // after another try, or because the fault does not matter

	// Cut is as much of the answer as was announced. No client can see that
	// there was more; what reads the answer does.
	Cut = "half of the answer"

	// Other is what another service answered, if any bytes may be a file. It is
	// not JSON, so what reads the answer refuses it.
	Other = "no answer"
)

const (
	patience   = 2 * time.Minute  // of a client that must not need it
	impatience = 2 * time.Second  // of a client with which nothing else ends a fault
	moment     = time.Second / 10 // until the caller gives up, once the fault has begun
	givenUp    = patience / 3     // until the caller is back who gave up; one try alone may take half of patience
	recovering = time.Minute      // until an answer comes again, with HTTP/2 or little patience
	asks       = 10               // of a client whose patience ends before the fault begins
	memory     = bombSize / 2     // bytes that may be allocated meanwhile, by other tests too
	longest    = 3000             // bytes of an error
)

// Run runs the table.
//
// net/http writes to the standard logger what a server sends without being
// asked, which may be part of a secret; the provider and this test switch that
// logger off.
func (s Suite) Run(t *testing.T) {
	log.SetOutput(io.Discard)
	rows := table(s.Service)
	names := slices.Concat(slices.Collect(maps.Keys(s.Sees)), slices.Collect(maps.Keys(s.Cannot)), s.Late)
	for _, name := range names {
		if !slices.ContainsFunc(rows, func(r fault) bool { return r.name == name }) {
			t.Errorf("there is no fault %q", name)
		}
	}
	for _, row := range rows {
		row.late = row.late || slices.Contains(s.Late, row.name)
		t.Run(row.name, func(t *testing.T) {
			if why, ok := s.Cannot[row.name]; ok {
				t.Skip(why)
			}
			s.run(t, row)
		})
	}
	t.Run("given up at the end of an answer", s.runGivenUp)
}

func (s Suite) run(t *testing.T, row fault) {
	sees, declared := s.Sees[row.name]
	if !declared && !row.cancelled {
		t.Fatal("what the user sees of this fault is not in Sees, nor in Cannot why it cannot happen")
	}
	front := New(t, s.Server(t), s.Options)
	if row.late {
		front.Patience = impatience
	}
	client := s.Client(t, front)

	got, err := s.ask(t, client, front, row)
	if row.cancelled {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %d bytes, %v; want context.Canceled", len(got), err)
		}
	} else {
		s.checkSeen(t, sees, got, err)
	}
	if err != nil {
		client.Secrets.CheckError(t, err)
		checkShort(t, err)
		s.Check(t, err, row.refusal)
	}

	front.have(fault{})
	if !row.refused {
		s.recovers(t, client, row)
	}
	s.checkRequests(t, client, front, row)
}

// ask has the fault happen, asks, and looks at what that took. Who has little
// patience asks again if it was over before the fault began.
func (s Suite) ask(t *testing.T, client Client, front *Front, row fault) (got []byte, err error) {
	t.Helper()
	begun := front.have(row)
	for range asks {
		got, err = s.askOnce(t, client, row, begun)
		if isClosed(begun) {
			return got, err
		}
		if !row.late {
			break
		}
	}
	t.Error("the fault did not begin: this test shows nothing")
	return got, err
}

func (s Suite) askOnce(t *testing.T, client Client, row fault, begun <-chan struct{}) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if row.cancelled {
		go func() {
			select {
			case <-begun:
				time.AfterFunc(moment, cancel)
			case <-ctx.Done():
			}
		}()
	}
	allocated, begin := Allocations(), time.Now()
	got, err := client.Ask(ctx)
	if took := time.Since(begin); row.cancelled && took > givenUp {
		t.Errorf("it took %s", took)
	}
	if used := Allocations() - allocated; row.large && used > memory {
		t.Errorf("it allocated %d MiB", used>>20)
	}
	return got, err
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Allocations is how many bytes the process has allocated so far.
func Allocations() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// checkSeen holds an answer against Sees.
func (s Suite) checkSeen(t *testing.T, sees string, got []byte, err error) {
	t.Helper()
	want := map[string]bool{
		Works: bytes.Equal(got, s.Want),
		Cut:   bytes.Equal(got, s.Want[:len(s.Want)/2]),
		Other: !json.Valid(got),
	}
	ok, isAnswer := want[sees]
	switch {
	case isAnswer && (err != nil || !ok):
		t.Errorf("got %d bytes, %v; want %s", len(got), err, sees)
	case !isAnswer && err == nil:
		t.Errorf("got %d bytes, want an error", len(got))
	case !isAnswer && !saysOneOf(err, sees):
		t.Errorf("got %v, want it to contain %q", err, sees)
	}
}

func saysOneOf(err error, parts string) bool {
	return slices.ContainsFunc(strings.Split(parts, " | "), func(part string) bool {
		return part != "" && strings.Contains(err.Error(), part)
	})
}

// CheckError checks an error, and those that it wraps.
func (s Secrets) CheckError(t *testing.T, err error) {
	t.Helper()
	for e := err; e != nil; e = errors.Unwrap(e) {
		s.CheckText(t, "the error", e.Error())
	}
	s.CheckText(t, "the error", fmt.Sprintf("%#v", err))
}

func checkShort(t *testing.T, err error) {
	t.Helper()
	if strings.ContainsFunc(err.Error(), unicode.IsControl) {
		t.Errorf("the error holds control characters: %q", err)
	}
	if n := len(err.Error()); n > longest {
		t.Errorf("the error has %d bytes", n)
	}
}

// CheckText checks one text.
func (s Secrets) CheckText(t *testing.T, what, text string) {
	t.Helper()
	for _, secret := range s {
		if strings.Contains(text, secret) {
			t.Errorf("%s holds a secret: %s", what, text)
		}
	}
}

// recovers asks again, now that the fault is over. gRPC keeps away from a server
// that failed for a moment, and little patience may be over too early; nobody
// else needs another try.
func (s Suite) recovers(t *testing.T, client Client, row fault) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		got, err := client.Ask(t.Context())
		if err == nil && bytes.Equal(got, s.Want) {
			return
		}
		if !s.HTTP2 && !row.late || time.Since(begin) > recovering {
			t.Errorf("the fault is over, and the same client gets %d bytes, %v", len(got), err)
			return
		}
	}
}

// checkRequests looks at what arrived: reads, and nothing secret elsewhere.
func (s Suite) checkRequests(t *testing.T, client Client, front *Front, row fault) {
	t.Helper()
	strayed := front.strayed.Requests()
	for _, r := range append(front.requests.Requests(), strayed...) {
		if !s.Reads(r.Request, r.Body) {
			t.Errorf("it was asked to %s %s", r.Method, r.URL.Path)
		}
	}
	for _, r := range strayed {
		if !s.Strays || row.stays || r.Header.Get("Authorization") != "" || r.Header.Get("Cookie") != "" {
			t.Errorf("another origin was asked to %s %s, with %d headers", r.Method, r.URL.Path, len(r.Header))
		}
		client.Secrets.CheckText(t, "what another origin got", r.Text)
	}
}

// runGivenUp has the caller give up at the end of each answer: everything is
// there then, and there is nobody to take it.
func (s Suite) runGivenUp(t *testing.T) {
	front := New(t, s.Server(t), s.Options)
	for nth := 1; ; nth++ {
		client := s.Client(t, front)
		ctx, gaveUp := giveUp(t.Context(), nth)
		got, err := client.Ask(ctx)
		switch {
		case gaveUp() && !errors.Is(err, context.Canceled):
			t.Errorf("given up after %d answers: got %d bytes, %v; want context.Canceled", nth, len(got), err)
		case !gaveUp():
			if err != nil || !bytes.Equal(got, s.Want) {
				t.Errorf("not given up: got %d bytes, %v", len(got), err)
			}
			return
		}
	}
}

// giveUp returns a context that ends when the nth answer has been read to its
// end, just before the reader learns that it was the end. GaveUp reports whether
// that has happened.
//
// net/http then hands over the answer all the same. An answer that somebody
// makes up because the reader has gone looks the same.
func giveUp(ctx context.Context, nth int) (limited context.Context, gaveUp func() bool) {
	limited, cancel := context.WithCancel(ctx)
	var answers atomic.Int64
	limited = httptrace.WithClientTrace(limited, &httptrace.ClientTrace{
		PutIdleConn: func(error) { // the connection can be used again
			if answers.Add(1) == int64(nth) {
				cancel()
			}
		},
	})
	return limited, func() bool { return answers.Load() >= int64(nth) }
}

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
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/sidebyside"
)

// Suite stands between a client and its server, and runs the table of faults.
type Suite struct {
	Options

	// Server creates the faithful server, which returns Want to any client with the right credentials.
	Server func(t *testing.T) http.Handler
	Want   []byte

	// Client creates the client for the server at f.URL. The client must trust f.CA, and give up after f.Patience.
	Client func(t *testing.T, f *Front) Client

	// Service adds the rows for key services; it may be nil.
	Service *Service

	// Reads reports whether a request is one that a read makes.
	Reads func(r *http.Request, body []byte) bool

	// Strays allows requests without secrets to another origin, after a redirect.
	Strays bool

	// Check checks the error from a fault. If refusal is true, the service has said that it has no such key for this
	// caller.
	Check func(t *testing.T, err error, refusal bool)

	// Sees maps each fault to the message users see, where it differs from the default. The message is a part of the
	// error, or [Works], [Cut], [Other] or [InGolden]. If the system's report depends on when a reset arrives, the
	// possible parts are separated by " | ". The default of faults that each client handles in its own way is
	// [InGolden]. Cannot maps a fault to the reason why it cannot affect this client, or why the test does not wait for
	// its end.
	Sees, Cannot map[string]string

	// Golden compares the text of an error that is [InGolden].
	Golden func(t *testing.T, name, text string)

	// Late names additional rows, besides the stalls, that only this client's time limit ends.
	Late []string

	// SharedWire leaves out the rows that the HTTP client decides before our code sees a response. Set it if another
	// suite runs all rows with the same HTTP client.
	SharedWire bool

	// Few runs only a tenth of the rows, except in "make soak". Set it when rows start processes and another suite
	// runs all rows for this client.
	Few bool

	// Alone runs the rows one after another, because Client sets environment variables.
	Alone bool
}

// Client sends one request to the server.
type Client struct {
	Ask     func(ctx context.Context) ([]byte, error)
	Secrets Secrets // must appear in no error, and only the server may receive them
}

// Secrets are texts that must not be shown to anyone.
type Secrets []string

// These are results that users see instead of an error.
const (
	Works = "the answer" // after another try, or because the fault does not matter

	// Cut is the part of the answer that was announced. No client can detect that there was more. The code that reads
	// the answer must detect it.
	Cut = "half of the answer"

	// Other is the response of a different service, if the client accepts any bytes as a file. It is not JSON, so the
	// code that reads it refuses it.
	Other = "no answer"

	// InGolden is a complete error text that does not depend on timing.
	InGolden = "as in the golden"
)

const or = " | " // separates the possible parts of errors

const (
	patience   = 2 * time.Minute        // for a client that must not reach its time limit
	impatience = 200 * time.Millisecond // for a client when only its time limit ends a fault; doubled if too short
	enough     = 5 * time.Second        // from this limit on, it is not doubled any more
	grace      = 30 * time.Second       // for a client to give up after its time limit, and for a correct answer to return
	moment     = time.Second / 10       // until the caller cancels, after the fault has begun
	givenUp    = patience / 3           // for a canceled call to return; a single try alone may take half of patience
	memory     = bombSize / 2           // bytes that may be allocated during a row, including by other tests
	longest    = 3000                   // maximum length of an error, in bytes
)

// Run runs the table. Rows spend more time waiting than computing, so they run side by side, except the rows that
// measure allocations.
//
// net/http logs unsolicited server data to the standard logger, and the data may contain a part of a secret. The
// provider and this test therefore silence that logger.
func (s Suite) Run(t *testing.T) {
	log.SetOutput(io.Discard)
	rows := s.rows(t)
	build, building := s.Client, new(sync.Mutex)
	s.Client = func(t *testing.T, f *Front) Client {
		building.Lock()
		defer building.Unlock()
		return build(t, f)
	}
	waiting := map[string]func(*testing.T){}
	for _, row := range rows {
		if row.large || s.Alone {
			t.Run(row.name, func(t *testing.T) { s.runRow(t, row) })
		} else {
			waiting[row.name] = func(t *testing.T) { s.runRow(t, row) }
		}
	}
	sidebyside.Run(t, waiting)
	t.Run("given up at the end of an answer", s.runGivenUp)
}

// rows returns the rows that this suite runs. With -short, it returns only the rows that are quick and that the
// client's own code decides.
func (s Suite) rows(t *testing.T) []fault {
	t.Helper()
	rows := slices.DeleteFunc(table(s.Service), func(r fault) bool { return r.wire && s.SharedWire })
	names := slices.Concat(slices.Collect(maps.Keys(s.Sees)), slices.Collect(maps.Keys(s.Cannot)), s.Late)
	for _, name := range names {
		if !slices.ContainsFunc(rows, func(r fault) bool { return r.name == name }) {
			t.Errorf("there is no fault %q here", name)
		}
	}
	for i, row := range rows {
		rows[i].late = row.late || slices.Contains(s.Late, row.name)
	}
	if testing.Short() {
		rows = slices.DeleteFunc(rows, func(r fault) bool { return r.wire || r.large })
	}
	if s.Few {
		rows = testkit.Sample(rows)
	}
	return rows
}

func (s Suite) runRow(t *testing.T, row fault) {
	t.Helper()
	if why, ok := s.Cannot[row.name]; ok {
		t.Skip(why)
	}
	if sees, declared := s.Sees[row.name]; declared && sees == row.usual {
		t.Errorf("Sees has %q, which is the default", sees)
	}
	if !row.cancelled && s.sees(row) == InGolden && s.Golden == nil {
		t.Fatal("Sees has no entry for this fault, and there is no golden")
	}
	s.run(t, row)
}

// run tests one fault. A client with a short time limit may give up before it has seen the fault, or before the correct
// answer has returned. In that case, run repeats the test with twice the time limit.
func (s Suite) run(t *testing.T, row fault) {
	t.Helper()
	front := New(t, s.Server(t), s.Options)
	if row.late {
		front.Patience = impatience
	}
	wrong, begun := s.show(t, front, row)
	for row.late && wrong != "" && (front.Patience < enough || !begun && front.Patience < patience) {
		front.Patience *= 2
		wrong, begun = s.show(t, front, row)
	}
	if wrong != "" {
		t.Error(wrong)
	}
}

// show applies the fault to a new client. It returns a description of a failure that a longer time limit may fix, or an
// empty string, and whether the fault has begun.
func (s Suite) show(t *testing.T, front *Front, row fault) (wrong string, hasBegun bool) {
	t.Helper()
	client := s.Client(t, front)
	begun := front.have(row)
	got, err := ask(t, client, front, row, begun)
	if !isClosed(begun) {
		return fmt.Sprintf("the fault did not begin, so this test shows nothing: got %d bytes, %v", len(got), err), false
	}
	if err != nil {
		client.Secrets.CheckError(t, err)
		checkShort(t, err)
		s.Check(t, err, row.refusal)
	}
	wrong = s.checkSeen(row, got, err)
	front.have(fault{})
	if wrong == "" && !row.refused {
		wrong = s.recovers(t, client, front, row)
	}
	s.checkRequests(t, client, front, row)
	if wrong == "" && !row.cancelled && s.sees(row) == InGolden {
		s.Golden(t, row.name, err.Error())
	}
	return wrong, true
}

// ask sends a request during the fault, and checks its time and memory. The context is canceled if the row says so, or
// if the client does not give up in time.
func ask(t *testing.T, client Client, front *Front, row fault, begun <-chan struct{}) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	limit := moment
	if row.late {
		limit = front.Patience + grace
	}
	if row.late || row.cancelled {
		go func() {
			select {
			case <-begun: // not earlier, because a slow machine takes a while to send the request
				time.AfterFunc(limit, cancel)
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

// Allocations returns the number of bytes that the process has allocated so far.
func Allocations() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// checkSeen checks that the user sees the result in Sees, or the default result. It returns a description of the
// difference, or an empty string.
func (s Suite) checkSeen(row fault, got []byte, err error) (wrong string) {
	sees := s.sees(row)
	want := map[string]bool{
		Works: bytes.Equal(got, s.Want),
		Cut:   bytes.Equal(got, s.Want[:len(s.Want)/2]),
		Other: !json.Valid(got),
	}
	ok, isAnswer := want[sees]
	switch {
	case row.cancelled:
		ok, sees = errors.Is(err, context.Canceled), context.Canceled.Error()
	case isAnswer:
		ok = ok && err == nil
	case sees == InGolden:
		ok = err != nil
	default:
		ok = err != nil && saysOneOf(err, sees)
	}
	if !ok {
		return fmt.Sprintf("got %d bytes, %v; want %q, of Sees in the test, or else of faults.table", len(got), err, sees)
	}
	return ""
}

// sees returns the expected result of a fault, in the form of Sees.
func (s Suite) sees(row fault) string {
	if sees, declared := s.Sees[row.name]; declared {
		return sees
	}
	return row.usual
}

func saysOneOf(err error, parts string) bool {
	return slices.ContainsFunc(strings.Split(parts, or), func(part string) bool {
		return part != "" && strings.Contains(err.Error(), part)
	})
}

// CheckError checks that an error, and the errors it wraps, contain no secret.
func (s Secrets) CheckError(t *testing.T, err error) {
	t.Helper()
	for e := err; e != nil; e = errors.Unwrap(e) {
		s.CheckText(t, "the error", e.Error())
	}
	s.CheckText(t, "the error", fmt.Sprintf("%#v", err))
}

func checkShort(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	if strings.ContainsFunc(text, unicode.IsControl) {
		t.Errorf("the error holds control characters: %q", err)
	}
	if n := len(err.Error()); n > longest {
		t.Errorf("the error has %d bytes", n)
	}
}

// CheckText checks that a text contains no secret.
func (s Secrets) CheckText(t *testing.T, what, text string) {
	t.Helper()
	for _, secret := range s {
		if strings.Contains(text, secret) {
			t.Errorf("%s holds a secret: %s", what, text)
		}
	}
}

// recovers sends the request again after the fault is over. Only a client with a short time limit may need more than
// one try.
func (s Suite) recovers(t *testing.T, client Client, front *Front, row fault) (wrong string) {
	t.Helper()
	var most time.Duration
	if row.late {
		most = front.Patience + grace
	}
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		got, err := client.Ask(t.Context())
		if err == nil && bytes.Equal(got, s.Want) {
			return ""
		}
		if time.Since(begin) > most {
			return fmt.Sprintf("the fault is over, and the same client gets %d bytes, %v", len(got), err)
		}
	}
}

// checkRequests checks that only reads arrived, and that no secrets went to another origin.
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

// runGivenUp cancels the request at the end of each response, when everything has arrived but nobody takes it.
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

// giveUp returns a context that is canceled after the nth response has been read completely, just before the reader
// notices the end. The gaveUp function reports whether that has happened.
//
// net/http then still delivers the response. A made-up response, caused by the reader giving up, would look the same.
func giveUp(ctx context.Context, nth int) (limited context.Context, gaveUp func() bool) {
	limited, cancel := context.WithCancel(ctx)
	var answers atomic.Int64
	limited = httptrace.WithClientTrace(limited, &httptrace.ClientTrace{
		PutIdleConn: func(error) { // the connection is free for the next request
			if answers.Add(1) == int64(nth) {
				cancel()
			}
		},
	})
	return limited, func() bool { return answers.Load() >= int64(nth) }
}

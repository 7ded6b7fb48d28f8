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

	// Sees is what the user sees of each fault that is not what is usual for it: a
	// part of the error, or [Works], [Cut], [Other] or [InGolden]. If the moment of a reset
	// decides what the system reports, the parts that may be seen stand with " | "
	// between them. Cannot says why a fault cannot befall this client, or why its
	// end is not waited for. A row for which nothing is usual is in one of the two,
	// unless the caller gives up in it.
	Sees, Cannot map[string]string

	// Golden compares the text of an error that Sees has as [InGolden].
	Golden func(t *testing.T, name, text string)

	// Late names the rows that nothing but the patience of this client ends,
	// besides the stalls.
	Late []string

	// SharedWire leaves out the rows that the HTTP client decides before anybody
	// looks at an answer. It is for clients that share theirs with the client of a
	// suite that runs all rows.
	SharedWire bool

	// Few leaves nine of ten rows to "make soak". It is for a client of which another suite
	// runs all rows, and whose rows start processes.
	Few bool

	// Alone has the rows run one after another, because Client sets variables of
	// the environment.
	Alone bool
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

	// InGolden is an error that no moment decides, in full.
	InGolden = "as in the golden"
)

const or = " | " // between the parts of errors that may be seen

const (
	patience   = 2 * time.Minute        // of a client that must not need it
	impatience = 200 * time.Millisecond // of a client with which nothing else ends a fault; it doubles if that is too little
	enough     = 5 * time.Second        // patience that is not doubled any more
	grace      = 30 * time.Second       // for a client to give up after its patience, and for an answer to come again
	moment     = time.Second / 10       // until the caller gives up, once the fault has begun
	givenUp    = patience / 3           // until the caller is back who gave up; one try alone may take half of patience
	memory     = bombSize / 2           // bytes that may be allocated meanwhile, by other tests too
	longest    = 3000                   // bytes of an error
)

// Run runs the table. Rows wait more than they compute, so they run side by
// side, except those that measure what is allocated.
//
// net/http writes to the standard logger what a server sends without being
// asked, which may be part of a secret; the provider and this test switch that
// logger off.
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

// rows are those of the table that this suite runs. With -short, they are those
// that the client's own code decides, and that are soon over.
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
	switch sees, declared := s.Sees[row.name]; {
	case !declared && row.usual == "" && !row.cancelled:
		t.Fatal("what the user sees of this fault is not in Sees, nor in Cannot why it cannot happen")
	case declared && sees == row.usual:
		t.Errorf("Sees has %q, which is what is usual", sees)
	}
	s.run(t, row)
}

// run shows one fault. A client with little patience may give up before it has
// seen the fault, or before the answer has come again; then another one gets
// twice as much.
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

// show has the fault befall a new client. It returns what is wrong that more
// patience may put right, "" if nothing is, and whether the fault has begun.
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
	if wrong == "" && s.Sees[row.name] == InGolden {
		s.Golden(t, row.name, err.Error())
	}
	return wrong, true
}

// ask asks while there is the fault, and looks at what that took. The caller
// gives up if the row says so, or if the client does not although it should.
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
			case <-begun: // and not before: it takes a slow machine a while to ask
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

// Allocations is how many bytes the process has allocated so far.
func Allocations() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// checkSeen compares an answer with Sees.
func (s Suite) checkSeen(row fault, got []byte, err error) (wrong string) {
	sees, declared := s.Sees[row.name]
	if !declared {
		sees = row.usual
	}
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

func saysOneOf(err error, parts string) bool {
	return slices.ContainsFunc(strings.Split(parts, or), func(part string) bool {
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
	text := err.Error()
	if strings.ContainsFunc(text, unicode.IsControl) {
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

// recovers asks again, now that the fault is over. Little patience may be over too
// early; nobody else needs another try.
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
// net/http then still hands over the answer. An answer that somebody
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

package encryptiontest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/faults"
)

// Faults is the harness of a key provider that asks a service over HTTP or
// gRPC. The test stands between the two and has go wrong what goes wrong on
// networks.
type Faults struct {
	Server http.Handler // the service; it may allow nothing but what a read needs
	HTTP2  bool         // the client speaks nothing else, as with gRPC
	Hosts  []string     // that the client asks for; 127.0.0.1 does not have to be here

	// Build makes the key provider that asks the service at f. It has as little
	// patience as can be configured; waits between tries are short.
	Build func(t *testing.T, f Front) encryption.KeyProvider

	Stored json.RawMessage // what a file holds of a key
	Key    []byte          // the key

	// At chooses the requests whose answers go wrong, nil all of them.
	At func(r *http.Request, body []byte) bool

	// Reads reports whether a request is one that a read makes: Decrypt, and
	// what it takes to be let in.
	Reads func(r *http.Request, body []byte) bool

	// Throttled, Unavailable, Denied, Disabled, NotFound and AnotherKey are
	// answers of the service, in its own form. One that it does not have is nil.
	Throttled, Unavailable, Denied, Disabled, NotFound, AnotherKey http.HandlerFunc

	Secrets []string // what stands in the configuration; it must not come out

	// Sees is what the user sees of each fault: a part of the error, or [Works].
	// Where the moment of a reset decides what the system reports, the parts that
	// may be seen stand with " | " between them.
	// Cannot says why a fault cannot befall this key provider, or why its end is
	// not waited for. Each row is in one of the two.
	Sees, Cannot map[string]string
}

// Works is what is seen when a fault does not matter, or is over with the next
// try.
const Works = "the key"

// Front is where the key provider has to ask.
type Front struct {
	URL     string // https://127.0.0.1:12345
	Address string // 127.0.0.1:12345
	CA      string // what it trusts, in PEM format
	Other   string // another origin, which nobody has named
}

type fault struct {
	name      string
	fault     faults.Fault
	noKey     bool // the next method may be tried; otherwise the error is final
	large     bool // much more is sent than may be kept
	cancelled bool // the reader gives up, and that is what it is told
}

func (h Faults) rows() []fault {
	return []fault{
		{name: "nobody listens", fault: faults.Refused()},
		{name: "reset at once", fault: faults.Reset()},
		{name: "reset in the body", fault: faults.ResetMidBody()},
		{name: "closed without an answer", fault: faults.Closed()},
		{name: "short body", fault: faults.Short()},
		{name: "Content-Length too large", fault: faults.TooLargeLength()},
		{name: "Content-Length too small", fault: faults.TooSmallLength()},
		{name: "endless body", fault: faults.Endless(), large: true},
		{name: "gzip bomb", fault: faults.Bomb(), large: true},
		{name: "not HTTP", fault: faults.NotHTTP()},
		{name: "malformed status line", fault: faults.BadStatusLine()},
		{name: "malformed header", fault: faults.BadHeader()},
		{name: "another service", fault: faults.Garbage()},

		{name: "hang", fault: faults.Stall()},
		{name: "hang in the body", fault: faults.StallMidBody()},
		{name: "hang, cancelled", fault: faults.Stall(), cancelled: true},
		{name: "hang in the body, cancelled", fault: faults.StallMidBody(), cancelled: true},
		{name: "hang in the handshake, cancelled", fault: faults.Mute(), cancelled: true},

		{name: "throttled", fault: faults.Answer(h.Throttled)},
		{name: "throttled, once", fault: faults.Answer(h.Throttled).Once()},
		{name: "throttled for a year", fault: faults.Answer(later(h.Throttled))},
		{name: "throttled for a year, cancelled", fault: faults.Answer(later(h.Throttled)), cancelled: true},
		{name: "unavailable", fault: faults.Answer(h.Unavailable)},
		{name: "unavailable, once", fault: faults.Answer(h.Unavailable).Once()},
		{name: "500 of a proxy", fault: faults.Status(500)},
		{name: "503 of a proxy, once", fault: faults.Status(503).Once()},

		{name: "denied", fault: faults.Answer(h.Denied), noKey: true},
		{name: "disabled", fault: faults.Answer(h.Disabled), noKey: true},
		{name: "not found", fault: faults.Answer(h.NotFound), noKey: true},
		{name: "another key", fault: faults.Answer(h.AnotherKey), noKey: true},

		{name: "redirect loop", fault: faults.RedirectLoop()},
		{name: "redirect to another origin", fault: faults.RedirectAway()},

		{name: "certificate expired", fault: faults.Expired()},
		{name: "certificate of another host", fault: faults.OfAnotherHost()},
		{name: "certificate of an unknown authority", fault: faults.OfAnotherAuthority()},
		{name: "TLS 1.0", fault: faults.OldTLS()},
		{name: "no TLS", fault: faults.NotTLS()},
		{name: "handshake breaks off", fault: faults.BrokenHandshake()},
	}
}

// later asks for a wait of a year.
func later(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "31536000")
		h(w, r)
	}
}

// faultMemory is what may be allocated meanwhile, by other tests too.
const faultMemory = faults.BombSize / 2

// Run runs the test.
//
// net/http writes to the standard logger what a server sends without being
// asked, which may be part of a key. A program that asks services for keys
// should switch that logger off, as the provider and this test do.
func (h Faults) Run(t *testing.T) {
	log.SetOutput(io.Discard)
	rows := h.rows()
	for _, names := range []map[string]string{h.Sees, h.Cannot} {
		for name := range names {
			if !slices.ContainsFunc(rows, func(f fault) bool { return f.name == name }) {
				t.Errorf("there is no fault %q", name)
			}
		}
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if why, ok := h.Cannot[row.name]; ok {
				t.Skip(why)
			}
			h.run(t, row)
		})
	}
	t.Run("given up at the end of an answer", h.runGivenUp)
}

// runGivenUp has the caller give up at the end of each answer: the key is there
// then, and there is nobody to take it.
func (h Faults) runGivenUp(t *testing.T) {
	front := faults.New(t, h.Server, faults.Options{HTTP2: h.HTTP2, Hosts: h.Hosts, At: h.At})
	for nth := 1; ; nth++ {
		provider := h.Build(t, Front{front.URL, strings.TrimPrefix(front.URL, "https://"), front.CA, front.Other})
		ctx, gaveUp := faults.GiveUp(t.Context(), nth)
		key, err := provider.Key(ctx, nil, bytes.Clone(h.Stored))
		switch {
		case gaveUp() && !errors.Is(err, context.Canceled):
			t.Errorf("given up after %d answers: got a key of %d bytes, %v; want context.Canceled", nth, len(key), err)
		case !gaveUp():
			if err != nil || !bytes.Equal(key, h.Key) {
				t.Errorf("not given up: got a key of %d bytes, %v", len(key), err)
			}
			return
		}
	}
}

func (h Faults) run(t *testing.T, row fault) {
	sees, declared := h.Sees[row.name]
	if !declared && !row.cancelled {
		t.Fatal("what the user sees of this fault is not in Sees, nor in Cannot why it cannot happen")
	}
	front := faults.New(t, h.Server, faults.Options{HTTP2: h.HTTP2, Hosts: h.Hosts, At: h.At})
	provider := h.Build(t, Front{front.URL, strings.TrimPrefix(front.URL, "https://"), front.CA, front.Other})

	front.Break(row.fault)
	ctx := t.Context()
	if row.cancelled {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
	}
	allocated := allocations()
	begin := time.Now()
	key, err := provider.Key(ctx, nil, bytes.Clone(h.Stored))
	if took := time.Since(begin); took > patience || row.cancelled && took > 3*time.Second {
		t.Errorf("it took %s", took)
	}
	if used := allocations() - allocated; row.large && used > faultMemory {
		t.Errorf("it allocated %d MiB", used>>20)
	}
	switch {
	case row.cancelled:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want context.DeadlineExceeded", err)
		}
	case sees == Works:
		if err != nil || !bytes.Equal(key, h.Key) {
			t.Errorf("got a key of %d bytes, %v", len(key), err)
		}
	case err == nil:
		t.Errorf("got a key of %d bytes, want an error", len(key))
	case !slices.ContainsFunc(strings.Split(sees, " | "), func(part string) bool { return part != "" && strings.Contains(err.Error(), part) }):
		t.Errorf("got %v, want it to contain %q", err, sees)
	}
	if err != nil {
		h.checkError(t, err, row.noKey)
	}

	front.Heal()
	if row.name != "nobody listens" {
		h.recovers(t, provider)
	}
	h.checkRequests(t, front)
}

// recovers waits a little: clients may keep away for a moment from a server
// that failed.
func (h Faults) recovers(t *testing.T, provider encryption.KeyProvider) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		key, err := provider.Key(t.Context(), nil, bytes.Clone(h.Stored))
		if err == nil && bytes.Equal(key, h.Key) {
			return
		}
		if time.Since(begin) > 5*time.Second {
			t.Errorf("the fault is over, and the same key provider has a key of %d bytes, %v", len(key), err)
			return
		}
	}
}

func allocations() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// checkError: an error that wraps ErrNoKey has the next method tried. That is
// right where the service says that this is not the key, and nowhere else.
func (h Faults) checkError(t *testing.T, err error, noKey bool) {
	t.Helper()
	if errors.Is(err, encryption.ErrNoKey) != noKey {
		t.Errorf("it wraps ErrNoKey: %t, want %t: %v", !noKey, noKey, err)
	}
	noSecret(t, err, append(slices.Clone(h.Secrets), base64.StdEncoding.EncodeToString(h.Key), string(h.Key)))
	if strings.ContainsFunc(err.Error(), unicode.IsControl) {
		t.Errorf("the error holds control characters: %q", err)
	}
	if len(err.Error()) > 1000 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

// checkRequests looks at what arrived: reads, and nothing elsewhere.
func (h Faults) checkRequests(t *testing.T, front *faults.Front) {
	t.Helper()
	for _, r := range front.Requests() {
		again, err := http.NewRequestWithContext(t.Context(), r.Method, "https://"+r.Host+r.Path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		again.Header = r.Header
		if !h.Reads(again, r.Body) {
			t.Errorf("it was asked to %s %s", r.Method, r.Path)
		}
	}
	for _, r := range front.Strayed() {
		t.Errorf("another origin was asked to %s %s", r.Method, r.Path)
	}
}

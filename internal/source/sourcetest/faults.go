package sourcetest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/faults"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// FaultHarness lets [Faults] stand between a kind that reads over HTTP and its
// server.
type FaultHarness struct {
	Kind source.Kind

	// Server makes the faithful server, which gives data to whoever has the
	// credentials.
	Server func(t *testing.T, data []byte) http.Handler

	// Place says how to ask the server at f.URL, trusting f.CA, with a limit of
	// about a second wherever the kind has one that can be set. Where
	// redirects are followed, f.CA is trusted for f.Other as well.
	Place func(t *testing.T, f *faults.Front) Place

	// At chooses the requests whose answers go wrong, nil all of them.
	At func(r *http.Request, body []byte) bool

	// Reads reports whether a request other than GET and HEAD reads. It may be
	// nil.
	Reads func(faults.Request) bool

	// Sees is what the user sees of each fault: a part of the error, or [Works],
	// [Cut] or [Other]. Where the moment of a reset decides what the system reports, the
	// parts that may be seen stand with " | " between them. Cannot says why a fault cannot befall this kind, or why its end
	// is not waited for. Each row is in one of the two.
	Sees, Cannot map[string]string
}

// What is seen in place of an error.
const (
	Works = "the state" // after another try, or because the fault does not matter

	// Cut is as much of the state as was announced. No client can see that
	// there was more; what reads the state does.
	Cut = "half of the state"

	// Other is what another service answered, where any bytes may be a file. It
	// is not JSON, so what reads the state refuses it.
	Other = "no state"
)

type fault struct {
	name  string
	fault faults.Fault

	large     bool // much more is sent than may be kept
	cancelled bool // the reader gives up, and that is what it is told
}

// networkFaults is what goes wrong. Rows may be added; each kind then has to
// say what its users see.
func networkFaults() []fault {
	return []fault{
		{name: "nobody listens", fault: faults.Refused()},
		{name: "reset at once", fault: faults.Reset()},
		{name: "reset in the body", fault: faults.ResetMidBody()},
		{name: "reset in the body, once", fault: faults.ResetMidBody().Once()},
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

		{name: "stall", fault: faults.Stall()},
		{name: "stall in the body", fault: faults.StallMidBody()},
		{name: "slow drip", fault: faults.Drip()},
		{name: "stall, cancelled", fault: faults.Stall(), cancelled: true},
		{name: "stall in the body, cancelled", fault: faults.StallMidBody(), cancelled: true},
		{name: "slow drip, cancelled", fault: faults.Drip(), cancelled: true},
		{name: "stall in the handshake, cancelled", fault: faults.Mute(), cancelled: true},

		{name: "403", fault: faults.Status(403)},
		{name: "500, once", fault: faults.Status(500).Once()},
		{name: "500", fault: faults.Status(500)},
		{name: "503 with Retry-After, once", fault: faults.Status(503, "Retry-After", "0").Once()},
		{name: "429 with Retry-After, once", fault: faults.Status(429, "Retry-After", "0").Once()},
		{name: "429 with Retry-After", fault: faults.Status(429, "Retry-After", "0")},
		{name: "429 with Retry-After of a year", fault: faults.Status(429, "Retry-After", "31536000")},
		{name: "429 with Retry-After of a year, cancelled", fault: faults.Status(429, "Retry-After", "31536000"), cancelled: true},

		{name: "redirect loop", fault: faults.RedirectLoop()},
		{name: "redirect to another origin", fault: faults.RedirectAway()},
		{name: "redirect to plain http", fault: faults.Downgrade()},

		{name: "certificate expired", fault: faults.Expired()},
		{name: "certificate of another host", fault: faults.OfAnotherHost()},
		{name: "certificate of an unknown authority", fault: faults.OfAnotherAuthority()},
		{name: "TLS 1.0", fault: faults.OldTLS()},
		{name: "no TLS", fault: faults.NotTLS()},
		{name: "handshake breaks off", fault: faults.BrokenHandshake()},
	}
}

const (
	faultPatience = 20 * time.Second    // for any row; the race detector slows much down
	faultMemory   = faults.BombSize / 2 // bytes that may be allocated meanwhile, by other tests too
)

// Faults tests one kind that reads over HTTP.
//
// net/http writes to the standard logger what a server sends without being
// asked, which may be part of a state; the provider and this test switch that
// logger off.
func Faults(t *testing.T, h FaultHarness) {
	log.SetOutput(io.Discard)
	rows := networkFaults()
	for name := range joined(h.Sees, h.Cannot) {
		if !slices.ContainsFunc(rows, func(f fault) bool { return f.name == name }) {
			t.Errorf("there is no fault %q", name)
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

// runGivenUp has the reader give up at the end of each answer: the whole state
// is there then, and there is nobody to take it.
func (h FaultHarness) runGivenUp(t *testing.T) {
	data := faultState()
	front := faults.New(t, h.Server(t, data), faults.Options{At: h.At})
	for nth := 1; ; nth++ {
		s := h.Place(t, front).Open(t, h.Kind, maxSize)
		ctx, gaveUp := faults.GiveUp(t.Context(), nth)
		snap, err := s.Fetch(ctx)
		switch {
		case gaveUp() && !errors.Is(err, context.Canceled):
			t.Errorf("given up after %d answers: got %v, %v; want context.Canceled", nth, snap != nil, err)
		case !gaveUp():
			if err != nil || !bytes.Equal(snap.Data, data) {
				t.Errorf("not given up: %v", err)
			}
			return
		}
	}
}

func joined(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

func (h FaultHarness) run(t *testing.T, row fault) {
	sees, declared := h.Sees[row.name]
	if !declared && !row.cancelled {
		t.Fatal("what the user sees of this fault is not in Sees, nor in Cannot why it cannot happen")
	}
	data := faultState()
	front := faults.New(t, h.Server(t, data), faults.Options{At: h.At})
	p := h.Place(t, front)
	s := p.Open(t, h.Kind, maxSize)

	front.Break(row.fault)
	ctx := t.Context()
	if row.cancelled {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
	}
	allocated := allocations()
	begin := time.Now()
	switch {
	case row.cancelled:
		if err := p.fails(ctx, t, s); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want context.DeadlineExceeded", err)
		}
	case sees == Works:
		if snap := fetch(t, s); !bytes.Equal(snap.Data, data) {
			t.Errorf("got %d bytes that are not the state", len(snap.Data))
		}
	case sees == Other:
		if json.Valid(fetch(t, s).Data) {
			t.Error("what another service answered passes for a state")
		}
	case sees == Cut:
		if snap := fetch(t, s); !bytes.Equal(snap.Data, data[:len(data)/2]) {
			t.Errorf("got %d bytes that are not half of the state", len(snap.Data))
		}
	default:
		checkFault(t, p.fails(ctx, t, s), sees)
	}
	if took := time.Since(begin); took > faultPatience || row.cancelled && took > 3*time.Second {
		t.Errorf("it took %s", took)
	}
	if used := allocations() - allocated; row.large && used > faultMemory {
		t.Errorf("it allocated %d MiB", used>>20)
	}

	front.Heal()
	if row.name != "nobody listens" {
		if snap := fetch(t, s); !bytes.Equal(snap.Data, data) {
			t.Error("the fault is over, and the same source does not yield the state")
		}
	}
	h.checkRequests(t, p, front, row)
}

func allocations() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func checkFault(t *testing.T, err error, sees string) {
	t.Helper()
	if !slices.ContainsFunc(strings.Split(sees, " | "), func(part string) bool { return part != "" && strings.Contains(err.Error(), part) }) {
		t.Errorf("got %v, want it to contain %q", err, sees)
	}
	if _, ok := source.IsMissing(err); ok {
		t.Errorf("got %v: a read that failed does not show that there is no state", err)
	}
	if strings.ContainsFunc(err.Error(), unicode.IsControl) {
		t.Errorf("the error holds control characters: %q", err)
	}
	if len(err.Error()) > 3000 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

// checkRequests looks at what arrived: reads, and nothing secret elsewhere.
func (h FaultHarness) checkRequests(t *testing.T, p Place, front *faults.Front, row fault) {
	t.Helper()
	all := append(front.Requests(), front.Strayed()...)
	if len(all) == 0 && row.name != "nobody listens" {
		t.Error("nothing arrived: this test shows nothing")
	}
	for _, r := range all {
		if r.Method != http.MethodGet && r.Method != http.MethodHead && (h.Reads == nil || !h.Reads(r)) {
			t.Errorf("it was asked to %s %s", r.Method, r.Path)
		}
	}
	for _, r := range front.Strayed() {
		if r.Header.Get("Authorization") != "" || r.Header.Get("Cookie") != "" {
			t.Errorf("another origin got credentials: %s %s", r.Method, r.Path)
		}
		p.checkText(t, "what another origin got", r.Text)
	}
}

// faultState is a state that does not become small when it is packed.
func faultState() []byte {
	noise := make([]byte, 90_000)
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // not for secrets
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	return []byte(`{"version":4,"terraform_version":"1.12.6","serial":1,"lineage":"x","outputs":{"noise":{"value":"` +
		base64.StdEncoding.EncodeToString(noise) + `","type":"string"}}}`)
}

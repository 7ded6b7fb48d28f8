package amplification

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// Answers stands before a server, and has its answers grow: one of an exchange at a
// time, in each way that its format has.
type Answers struct {
	behind http.Handler

	mu    sync.Mutex
	seen  []answer // of the exchange so far
	nth   int      // of them is another one
	other *answer  // nil for none
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

// NewAnswers returns a handler that answers faithfully until it is run.
func NewAnswers(behind http.Handler) *Answers { return &Answers{behind: behind} }

func (a *Answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	now := a.other
	if now == nil || len(a.seen) != a.nth {
		now = a.faithful(r)
	}
	a.seen = append(a.seen, *now)
	a.mu.Unlock()
	maps.Copy(w.Header(), now.header)
	w.WriteHeader(now.status)
	_, _ = w.Write(now.body)
}

func (a *Answers) faithful(r *http.Request) *answer {
	recorder := httptest.NewRecorder()
	a.behind.ServeHTTP(recorder, r)
	result := recorder.Result()
	defer result.Body.Close()
	for _, name := range []string{"Content-Length", "Transfer-Encoding", "Trailer"} {
		result.Header.Del(name)
	}
	return &answer{result.StatusCode, result.Header, recorder.Body.Bytes()}
}

// exchange is what a new client costs while the nth answer is another one, of size
// bytes.
func (a *Answers) exchange(t *testing.T, client func(*testing.T) func() error, nth int, other *answer, size int) Cost {
	t.Helper()
	read := client(t)
	a.mu.Lock()
	a.seen, a.nth, a.other = nil, nth, other
	a.mu.Unlock()
	return measure(size, func() string { return text(read()) })
}

// answerTimes is how many bytes may be allocated for each of an answer. The clients
// of clouds decode what they do not know, too.
const answerTimes = 160

// Run has each answer of an exchange grow, as an answer and as a refusal. Each
// exchange is that of a new client, which remembers nothing.
func (a *Answers) Run(t *testing.T, client func(t *testing.T) (read func() error)) {
	t.Helper()
	alone(t)
	nests := nestsApart(t)
	a.exchange(t, client, 0, nil, 0) // the first one loads what all of them share
	honest := a.exchange(t, client, 0, nil, 0)
	if honest.err != "" {
		t.Fatal(honest.err)
	}
	b := bounds{times: answerTimes, constant: little + honest.bytes, enough: 64 << 10, nests: nests}
	for nth, seen := range slices.Clone(a.seen) {
		for _, form := range seen.forms() {
			b.growAll(t, []Grammar{form.Grammar}, func(file string) Cost {
				return a.exchange(t, client, nth, form.answer(file), len(file))
			})
		}
	}
}

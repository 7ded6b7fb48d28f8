package amplification

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// Answers stands in front of a server and makes its responses grow: one response of an exchange at a time, in each way
// its format allows.
type Answers struct {
	behind http.Handler

	mu    sync.Mutex
	seen  []answer // the responses in the current exchange
	nth   int      // the index of the response to replace
	other *answer  // the replacement, or nil
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

// NewAnswers returns a handler that passes responses on unchanged until Run is called.
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

// exchange returns the cost for a new client when the nth response is replaced by other, which has size bytes.
func (a *Answers) exchange(t *testing.T, client func(*testing.T) func() error, nth int, other *answer, size int) Cost {
	t.Helper()
	read := client(t)
	a.mu.Lock()
	a.seen, a.nth, a.other = nil, nth, other
	a.mu.Unlock()
	return measure(size, func() string { return text(read()) })
}

// answerTimes is the number of bytes that may be allocated per response byte. It is high because cloud clients also
// decode unknown fields.
const answerTimes = 160

// Run makes each response in an exchange grow, both as a success and as a refusal. Each exchange uses a new client
// without cached data.
func (a *Answers) Run(t *testing.T, client func(t *testing.T) (read func() error)) {
	t.Helper()
	alone(t)
	nests := nestsApart(t)
	a.exchange(t, client, 0, nil, 0) // the first exchange loads shared data
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

// Package proxy implements the HTTP backend on the loopback interface that Terraform talks to.
package proxy

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/cmdline"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/files"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/module"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/states"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/words"
)

// Proxy is the backend that the child talks to.
//
// If the real backend uses the same protocol, Proxy passes on its refusals unchanged. Proxy's own errors have the
// status 422, because the child repeats a request after a 500 without showing a message. A 502 means that the real
// backend did not answer, so that the child tries again.
type Proxy struct {
	guard    *states.Guard
	backend  *states.Backend
	leftover *states.Leftover
	effect   cmdline.Effect // the effect of the command
	password string
	say      func(text string)

	mux  *http.ServeMux
	work sync.RWMutex // read-locked by each request from the child, and locked permanently at the end

	found     atomic.Pointer[func()]        // called once, at the child's next request
	notes     lastNote                      // the last message about the child's requests
	lock      childLock                     // the child's lock, in the proxy and in the real backend
	used      atomic.Bool                   // whether a state was requested or sent
	version   atomic.Pointer[store.Version] // the version read or written last, or nil
	unsure    atomic.Pointer[unsure]        // the state sent last, until its arrival is confirmed
	unwritten atomic.Pointer[error]         // why the newest state is not in the backend, and where wrap saved it, or nil
}

const ours = http.StatusUnprocessableEntity

// New returns the proxy between the child, which runs the command line, and the backend.
func New(l *cmdline.Line, g *states.Guard, left *states.Leftover) *Proxy {
	p := &Proxy{
		guard: g, backend: g.Backend, leftover: left, effect: l.Effect(), say: g.Say,
		password: rand.Text(), mux: http.NewServeMux(),
	}
	if l.Name == "force-unlock" && len(l.Args) > 0 {
		p.lock.forced = l.Args[0]
	}
	if l.IsOff("lock") {
		p.lock.refuseAll()
	}
	p.mux.HandleFunc("GET /state", p.get)
	p.mux.HandleFunc("POST /state", p.ofWriter(p.post))
	p.mux.HandleFunc("DELETE /state", p.ofWriter(p.remove))
	p.mux.HandleFunc("LOCK /lock", p.giveLock)
	p.mux.HandleFunc("UNLOCK /lock", p.takeBack)
	return p
}

// OnceFound makes the proxy call forget once, before it answers the child's next request.
func (p *Proxy) OnceFound(forget func()) { p.found.Store(&forget) }

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	if subtle.ConstantTimeCompare([]byte(user+":"+password), []byte(module.Username+":"+p.password)) != 1 {
		w.Header().Set("Connection", "close")
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) // do not read the rest of an unauthorized request
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if !p.work.TryRLock() { // the child has exited
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	defer p.work.RUnlock()
	if forget := p.found.Swap(nil); forget != nil {
		(*forget)()
	}
	p.notes.begin(r.Method)
	p.mux.ServeHTTP(w, r)
}

func (p *Proxy) get(w http.ResponseWriter, r *http.Request) {
	p.used.Store(true)
	state, version, err := p.backend.Read(r.Context())
	if err != nil {
		p.refuse(r.Context(), w, err)
		return
	}
	accept, digest := p.guard.Open, states.DigestOf(state)
	if state == nil {
		accept = p.guard.AcceptNone
	}
	plain, err := accept(r.Context(), state)
	if err != nil {
		p.fail(w, ours, "the state in the backend: "+words.State(err))
		return
	}
	// Without a lock, keep the version of the first read. If there was no state, Terraform reads again before its first
	// write, and might get a state that its plan did not consider.
	if p.version.Load() == nil || p.backend.HasLocks && p.lock.isHeld() {
		p.goOnFrom(r.Context(), version, digest)
	}
	if state == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	pass(w, http.StatusOK, plain)
}

// ofWriter returns a handler that refuses all requests if the command only reads the state.
func (p *Proxy) ofWriter(handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p.used.Store(true)
		if p.effect < cmdline.Writes {
			p.fail(w, ours, "another program tried to change the state, but this command only reads it; check which providers and scripts "+
				"the module runs")
			return
		}
		handle(w, r)
	}
}

func (p *Proxy) post(w http.ResponseWriter, r *http.Request) {
	plain, ok := p.receive(w, r)
	if !ok {
		return
	}
	ctx := context.WithoutCancel(r.Context()) // a received state is written even if the child has exited
	written, err := p.guard.MayWrite(plain)
	if err == nil {
		err = p.lock.check(lockID(r))
	}
	var sealed []byte
	if err == nil {
		sealed, err = p.seal(ctx, plain)
	}
	if err != nil {
		p.fail(w, ours, "the state was not written: "+words.Seal(err))
		return
	}
	if err := p.write(ctx, sealed); err != nil {
		if p.save(ctx, sealed, len(plain), err) {
			pass(w, http.StatusOK, nil)
		} else {
			p.unwritten.Store(nil) // the child itself saves the newer state
			p.refuse(ctx, w, err)
		}
		return
	}
	p.unwritten.Store(nil)
	p.unsure.Store(nil)
	p.guard.NoteLineage(written)
	p.guard.Lineage.Store(&written.Lineage)
	p.guard.Memory.Remember(ctx, written)
	p.guard.NoteRecipients(sealed)
	pass(w, http.StatusOK, nil)
}

// seal encrypts a state, and overwrites plain. If the child sends the same state again, seal returns the same bytes
// again: the first attempt may have arrived, and a server may accept only one state for each serial.
func (p *Proxy) seal(ctx context.Context, plain []byte) ([]byte, error) {
	digest := store.Digest(plain)
	if last := p.unsure.Load(); last != nil && last.plain == digest {
		return last.sealed, nil
	}
	sealed, _, err := states.Seal(ctx, p.guard.Target, plain, plain)
	if err == nil {
		p.unsure.Store(&unsure{digest, sealed})
	}
	return sealed, err
}

// unsure is a state that was sent and may have arrived.
type unsure struct {
	plain  store.Version // the digest of the plaintext
	sealed []byte
}

// save saves a state that the backend refused, if the child cannot save it itself. If save returns true, the proxy
// tells the child that the state was written, because the child would otherwise print the state. The user gets the true
// result at the end.
func (p *Proxy) save(ctx context.Context, sealed []byte, size int, why error) bool {
	if p.effect != cmdline.Changes || p.leftover.CanLeave(size, len(sealed)) {
		return false
	}
	p.guard.Memory.Leave(ctx, sealed)
	err := fmt.Errorf("the state was not written, even if the program says that it was: %w. The encrypted state is in %s", why,
		p.leftover.Save(ctx, sealed))
	p.unwritten.Store(&err)
	return true
}

// CheckWritten returns an error if the newest state is not in the backend and the child was not told.
func (p *Proxy) CheckWritten() error {
	if err := p.unwritten.Load(); err != nil {
		return *err
	}
	return nil
}

// write replaces the version that was read or written last. If there is none, write first reads the state.
func (p *Proxy) write(ctx context.Context, sealed []byte) error {
	version, err := p.read(ctx)
	if err != nil {
		return err
	}
	p.guard.Memory.Sends(ctx, sealed)
	if version, err = p.backend.Write(ctx, sealed, version); err == nil {
		p.goOnFrom(ctx, version, states.DigestOf(sealed))
	}
	return err
}

// goOnFrom records the version that the next write replaces. [states.Recovery] needs this version if that write fails.
func (p *Proxy) goOnFrom(ctx context.Context, version, digest store.Version) {
	p.version.Store(&version)
	p.guard.Memory.GoOn(ctx, digest)
}

// read returns the version that was read or written last. If there is none, it reads the state.
func (p *Proxy) read(ctx context.Context) (store.Version, error) {
	if known := p.version.Load(); known != nil {
		return *known, nil
	}
	_, version, err := p.backend.Read(ctx)
	return version, err
}

func (p *Proxy) remove(w http.ResponseWriter, r *http.Request) {
	if err := p.lock.check(lockID(r)); err != nil {
		p.fail(w, ours, "the state was not deleted: "+err.Error())
		return
	}
	ctx := context.WithoutCancel(r.Context())
	version, err := p.read(ctx)
	if err == nil {
		err = p.backend.Remove(ctx, version)
	}
	if err != nil {
		p.refuse(ctx, w, err)
		return
	}
	p.guard.Lineage.Store(new(string))
	p.guard.Memory.Remember(ctx, nil)
	p.goOnFrom(ctx, "", "")
	pass(w, http.StatusOK, nil)
}

func (p *Proxy) receive(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, err := meter.Read(r.Body, r.ContentLength, files.MaxState)
	if err != nil {
		p.fail(w, ours, "could not read the program's request: "+web.Reason(err, ""))
	}
	return body, err == nil
}

// refuse reports a failed request to the child and to the user. If a backend with the child's protocol refused the
// request, the user sees that response too, because the child does not show it while it retries.
func (p *Proxy) refuse(ctx context.Context, w http.ResponseWriter, err error) {
	_, isAnswer := errors.AsType[*store.AnswerError](err)
	if _, isHeld := errors.AsType[*store.HeldError](err); isAnswer || isHeld {
		p.tell(err.Error())
	}
	p.answer(ctx, w, err)
}

// answer reports an error to the child, and also to the user if the child cannot handle it. If the request was
// canceled, it reports no details.
func (p *Proxy) answer(ctx context.Context, w http.ResponseWriter, err error) {
	answer, isAnswer := errors.AsType[*store.AnswerError](err)
	held, isHeld := errors.AsType[*store.HeldError](err)
	_, isUnanswered := errors.AsType[*store.UnansweredError](err)
	switch {
	case isAnswer && isHeld && held.By != nil:
		pass(w, answer.Status, shown(*held.By))
	case isAnswer:
		pass(w, answer.Status, []byte(outside.Text(string(answer.Body[:min(len(answer.Body), longestAnswer)]))))
	case isHeld && held.By != nil:
		pass(w, http.StatusLocked, shown(*held.By))
	case ctx.Err() != nil:
		w.WriteHeader(http.StatusBadGateway)
	case isUnanswered:
		p.fail(w, http.StatusBadGateway, err.Error())
	default:
		p.fail(w, ours, err.Error())
	}
}

// shown returns a lock for the child, which prints the strings in it. These strings are untrusted, so shown escapes
// them. A lock that needs no escaping is passed on unchanged.
func shown(lock store.Lock) []byte {
	sent := lock.JSON()
	asSent := len(sent) <= longestAnswer && outside.Text(string(sent)) == string(sent)
	for _, text := range []*string{&lock.ID, &lock.Operation, &lock.Info, &lock.Who, &lock.Version, &lock.Created, &lock.Path} {
		escaped := outside.Line(*text, longest)
		asSent = asSent && escaped == *text
		*text = escaped
	}
	if asSent {
		return sent
	}
	return lock.At(lock.Path).JSON()
}

const (
	longest       = 1000     // maximum length of each string in a lock sent to the child, in bytes
	longestAnswer = 64 << 10 // maximum size of a response without a state, in bytes
)

// pass sends a response to the child.
func pass(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) //nolint:gosec // not for a browser, and the child may have exited
}

func (p *Proxy) fail(w http.ResponseWriter, status int, reason string) {
	p.tell(reason)
	http.Error(w, outside.Text(fault.Name(reason, "")), status)
}

// lastNote keeps the last message to the user, so that a repeated request does not repeat its message.
type lastNote struct {
	mu           sync.Mutex
	method, text string
}

// begin records the method of a request. A request with another method is not a repetition, so its messages are shown.
func (n *lastNote) begin(method string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if method != n.method {
		n.method, n.text = method, ""
	}
}

// tell shows the user a message about a request. Repetitions of the request do not repeat the message.
func (p *Proxy) tell(text string) {
	p.notes.mu.Lock()
	defer p.notes.mu.Unlock()
	if text != p.notes.text {
		p.say(text)
		p.notes.text = text
	}
}

// CheckUse returns an error if the child should have used the proxy but did not.
func (p *Proxy) CheckUse(code int) error {
	if !p.used.Load() && (p.lock.given || code == 0 && p.effect == cmdline.Changes) {
		return errors.New("the program did not use wrap's backend, so a plaintext state may be elsewhere; run init with wrap")
	}
	return nil
}

package wrap

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/wrap/words"
)

// proxy is the backend that the child sees.
//
// What a backend that speaks this protocol refuses is passed on as it is. Our own errors
// are 422: the child would try again after a 500, and say nothing of it. It does so, on
// purpose, after the 502 that stands for no answer.
type proxy struct {
	Options
	call     *invocation
	backend  *backend
	password string

	elsewhere error // about a state that would be made a second time while there is none here

	mux  *http.ServeMux
	work sync.RWMutex // held by each request of the child, and in the end by serve, for good

	told     told                          // of the requests of the child
	memory   *memory                       // of earlier runs
	lock     childLock                     // the locks of a child, of ours and of the real backend
	used     atomic.Bool                   // a state was asked for, or sent
	version  atomic.Pointer[store.Version] // of the state that was read last; nil if none was
	readers  atomic.Int64                  // for how many recipients of age the state was encrypted
	lineage  atomic.Pointer[string]        // of the state of this run, "" if there is none; nil until one was looked for
	unsure   atomic.Pointer[unsure]        // the state that was sent last, until it has arrived
	nameless sync.Once                     // see noteLineage
	oldKey   sync.Once                     // see warn
	saved    atomic.Pointer[error]         // why the newest state is not in the backend, and where it is; nil if it is not saved
}

const (
	username = "statecrypt"
	ours     = http.StatusUnprocessableEntity
)

func newProxy(o Options, call *invocation, upstream *backend) *proxy {
	p := &proxy{Options: o, call: call, backend: upstream, password: rand.Text(), mux: http.NewServeMux(), memory: &memory{}}
	p.mux.HandleFunc("GET /state", p.get)
	p.mux.HandleFunc("POST /state", p.post)
	p.mux.HandleFunc("DELETE /state", p.remove)
	p.mux.HandleFunc("LOCK /lock", p.giveLock)
	p.mux.HandleFunc("UNLOCK /lock", p.takeBack)
	return p
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	if subtle.ConstantTimeCompare([]byte(user+":"+password), []byte(username+":"+p.password)) != 1 {
		w.Header().Set("Connection", "close")
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) // what else a stranger sends is not read
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if !p.work.TryRLock() { // the child has ended
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	defer p.work.RUnlock()
	p.told.begin(r.Method)
	p.mux.ServeHTTP(w, r)
}

func (p *proxy) get(w http.ResponseWriter, r *http.Request) {
	p.used.Store(true)
	state, version, err := p.backend.Read(r.Context())
	if err != nil {
		p.refuse(r.Context(), w, err)
		return
	}
	accept, digest := p.open, digestOf(state)
	if state == nil {
		accept = p.acceptNone
	}
	plain, err := accept(r.Context(), state)
	if err != nil {
		p.fail(w, ours, "the state in the backend: "+words.State(err))
		return
	}
	// Without a lock, what was read first counts: before the first write, Terraform reads once
	// more if there was no state, and would send back what it planned nothing for.
	if p.version.Load() == nil || p.backend.HasLocks && p.lock.isHeld() {
		p.goOnFrom(r.Context(), version, digest)
	}
	if state == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	pass(w, http.StatusOK, plain)
}

// acceptNone is about a backend that has no state.
func (p *proxy) acceptNone(ctx context.Context, _ []byte) ([]byte, error) {
	switch {
	case p.Pins != Pins{}:
		return nil, errors.New("there is none, and -lineage or -minimum-serial say that there is; check the address")
	case p.elsewhere != nil && p.call.effect() == changes:
		return nil, p.elsewhere
	}
	if err := p.memory.accept(nil); err != nil {
		return nil, err
	}
	if p.lineage.Load() == nil {
		say(p.Stderr, fmt.Sprintf("there is no state at %s yet; if there should be one, check the address",
			outside.Line(p.backend.String(), 300)))
		if p.elsewhere != nil {
			say(p.Stderr, "warning: "+p.elsewhere.Error())
		}
		p.noteDoubts()
	}
	p.remember("")
	p.memory.remember(ctx, nil)
	return nil, nil
}

// open returns the plaintext of what the backend has.
func (p *proxy) open(ctx context.Context, state []byte) ([]byte, error) {
	readers := Recipients(state)
	opened, seen, err := p.decrypt(ctx, state)
	if err != nil {
		return nil, err
	}
	if p.call.effect() == changes {
		if err := p.backend.mayEncrypt(); err != nil { // before anything is made that no state would have
			return nil, err
		}
	}
	p.warn(opened)
	p.noteLineage(seen)
	p.remember(seen.Lineage)
	p.memory.remember(ctx, seen)
	p.readers.Store(int64(readers))
	return opened.Data, nil
}

// decrypt opens what the backend has, if it is accepted. It overwrites state.
func (p *proxy) decrypt(ctx context.Context, state []byte) (*encryption.Opened, *label, error) {
	opened, err := p.State.DecryptInPlace(ctx, state)
	if errors.Is(err, encryption.ErrPlaintext) {
		return nil, nil, fmt.Errorf("%w; to encrypt it, run init with statecrypt wrap -encrypt-existing", err)
	}
	if err != nil {
		return nil, nil, err
	}
	seen, err := p.expect(opened.Data)
	return opened, seen, err
}

// expect returns the label of a state that is accepted.
func (p *proxy) expect(plain []byte) (*label, error) {
	serial, lineage, err := store.Label(plain)
	seen := &label{lineage, serial}
	if err == nil {
		err = cmp.Or(p.Pins.Accept(serial, lineage), p.memory.accept(seen))
	}
	return seen, err
}

func (p *proxy) warn(opened *encryption.Opened) {
	switch {
	case !opened.Encrypted:
		say(p.Stderr, "the state in the backend is not encrypted; the next one that is written will be")
	case opened.UsedFallback:
		p.oldKey.Do(func() {
			say(p.Stderr, "only the fallback "+opened.Method+" opens the state in the backend, until it is written the next time; before "+
				"anybody deletes that key, statecrypt rotate -again -to FILE -backend gives the state the new one")
		})
	}
	for _, warning := range opened.Warnings {
		say(p.Stderr, warning.Text)
	}
}

// noteDoubts says what is probably not meant in a key that no state has been sealed with
// yet.
func (p *proxy) noteDoubts() {
	for _, doubt := range p.Doubts {
		say(p.Stderr, words.Doubt(doubt))
	}
}

// remember keeps the first lineage that is read: a backend that loses the state, or
// exchanges it, while the child runs does not make way for another one.
func (p *proxy) remember(lineage string) {
	if known := p.lineage.Load(); known == nil || *known == "" {
		p.lineage.Store(&lineage)
	}
}

func (p *proxy) post(w http.ResponseWriter, r *http.Request) {
	p.used.Store(true)
	plain, ok := p.receive(w, r)
	if !ok {
		return
	}
	ctx := context.WithoutCancel(r.Context()) // what has arrived is written, even if the child has gone
	written, err := p.mayWrite(plain)
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
			p.saved.Store(nil) // the child leaves a newer one
			p.refuse(ctx, w, err)
		}
		return
	}
	p.saved.Store(nil)
	p.unsure.Store(nil)
	p.noteLineage(written)
	p.lineage.Store(&written.Lineage)
	p.memory.remember(ctx, written)
	p.noteRecipients(sealed)
	pass(w, http.StatusOK, nil)
}

// seal encrypts a state. One that the child sends again is sent on as it was: it may have arrived, and
// a server may take one state for each serial.
func (p *proxy) seal(ctx context.Context, plain []byte) ([]byte, error) {
	digest := store.Digest(plain)
	if last := p.unsure.Load(); last != nil && last.plain == digest {
		return last.sealed, nil
	}
	sealed, _, err := Seal(ctx, p.State, plain)
	if err == nil {
		p.unsure.Store(&unsure{digest, sealed})
	}
	return sealed, err
}

// unsure is a state that was sent, and may have arrived or not.
type unsure struct {
	plain  store.Version // its digest
	sealed []byte
}

// save keeps a state that the backend refuses if the child could not. The child is told that it
// was written, or would print it; the user is told the truth in the end.
func (p *proxy) save(ctx context.Context, sealed []byte, size int, why error) bool {
	if p.call.effect() != changes || p.call.canLeave(size, len(sealed)) {
		return false
	}
	p.memory.leave(ctx, sealed)
	err := fmt.Errorf("the state was not written, whatever the program says: %w. It is encrypted in %s", why, p.call.save(ctx, sealed))
	p.saved.Store(&err)
	return true
}

// unwritten is an error if the newest state is not in the backend, and the child does not know.
func (p *proxy) unwritten() error {
	if err := p.saved.Load(); err != nil {
		return *err
	}
	return nil
}

// write replaces the state that was read. One that was not is read for it.
func (p *proxy) write(ctx context.Context, sealed []byte) error {
	version, err := p.read(ctx)
	if err != nil {
		return err
	}
	p.memory.sends(ctx, sealed)
	if version, err = p.backend.Write(ctx, sealed, version); err == nil {
		p.goOnFrom(ctx, version, digestOf(sealed))
	}
	return err
}

// goOnFrom notes what the next write replaces, and, if that fails, [Recover].
func (p *proxy) goOnFrom(ctx context.Context, version, digest store.Version) {
	p.version.Store(&version)
	p.memory.goOn(ctx, digest)
}

// read is the version that was read last.
func (p *proxy) read(ctx context.Context) (store.Version, error) {
	if known := p.version.Load(); known != nil {
		return *known, nil
	}
	_, version, err := p.backend.Read(ctx)
	return version, err
}

func (p *proxy) noteRecipients(sealed []byte) {
	if note := NoteRecipients(int(p.readers.Load()), sealed); note != "" {
		say(p.Stderr, "the state in the backend: "+note)
	}
	p.readers.Store(int64(Recipients(sealed)))
}

// mayWrite returns the label of a state that may replace the one that is there.
func (p *proxy) mayWrite(plain []byte) (*label, error) {
	if info, err := encryption.Inspect(plain); err != nil || info.Kind != encryption.KindState {
		return nil, errors.New("it is not a state in plaintext; does an encryption block in the configuration encrypt it already?")
	}
	serial, lineage, err := store.Label(plain)
	known := p.lineage.Load()
	switch {
	case err != nil || p.Force:
	case known == nil:
		err = errors.New("the one that it would replace has not been read; use -force to overwrite it")
	case *known != "" && *known != lineage:
		err = fmt.Errorf("its lineage is %s, and that of the one that it would replace is %s; use -force to overwrite it",
			outside.Quoted(lineage, 100), outside.Quoted(*known, 100))
	}
	return &label{lineage, serial}, err
}

// Seal encrypts a file, and opens it again, by the same method: what is stored can be
// read.
func Seal(ctx context.Context, target encryption.Target, plain []byte) (sealed []byte, again *encryption.Opened, err error) {
	if sealed, err = target.Encrypt(ctx, plain); err != nil {
		return nil, nil, err
	}
	again, err = target.Decrypt(ctx, sealed)
	switch {
	case err != nil:
		err = fmt.Errorf("what was encrypted cannot be opened again: %w", err)
	case !again.Encrypted:
		err = errors.New("the first method does not encrypt; here, unencrypted may only be a fallback")
	case again.UsedFallback:
		err = fmt.Errorf("the first method does not open what it has encrypted, and %s does; check the settings of the first", again.Method)
	case !bytes.Equal(again.Data, plain):
		err = errors.New("what was encrypted is not the same when it is opened again")
	}
	return sealed, again, err
}

// SealForOthers is [Seal], and works as well with settings that have recipients of age and no
// identity: here, nothing opens the file again, which is then nil.
func SealForOthers(ctx context.Context, target encryption.Target, plain []byte) (sealed []byte, again *encryption.Opened, err error) {
	sealed, again, err = Seal(ctx, target, plain)
	if failed, ok := errors.AsType[*encryption.Error](err); ok && sealed != nil && len(failed.Attempts) > 0 &&
		fault.Has[fault.NoIdentity](failed.Attempts[0].Err) { // the methods after the first are fallbacks
		err = nil
	}
	return sealed, again, err
}

func (p *proxy) remove(w http.ResponseWriter, r *http.Request) {
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
	p.lineage.Store(new(string))
	p.memory.remember(ctx, nil)
	p.goOnFrom(ctx, "", "")
	pass(w, http.StatusOK, nil)
}

func (p *proxy) receive(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, err := meter.Read(r.Body, r.ContentLength, maxState)
	if err != nil {
		p.fail(w, ours, "what the child sent cannot be read: "+web.Reason(err, ""))
	}
	return body, err == nil
}

// refuse tells the child, and the user, what became of a request. An answer of a backend
// that speaks the protocol of the child is shown as well: the child does not show it if it
// tries again.
func (p *proxy) refuse(ctx context.Context, w http.ResponseWriter, err error) {
	_, isAnswer := errors.AsType[*store.AnswerError](err)
	if _, isHeld := errors.AsType[*store.HeldError](err); isAnswer || isHeld {
		p.tell(err.Error())
	}
	p.answer(ctx, w, err)
}

// answer tells the child alone, if it is for the child. One that has gone is no reason to
// complain.
func (p *proxy) answer(ctx context.Context, w http.ResponseWriter, err error) {
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

// shown is a lock for the child, which prints its texts: whoever has made the lock has written them. One that has
// nothing to escape is passed on as it was sent.
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
	longest       = 1000     // bytes of a text in a lock that the child gets
	longestAnswer = 64 << 10 // bytes of an answer that is no state
)

// pass hands an answer on.
func pass(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) //nolint:gosec // no browser, and if the child is still there
}

func (p *proxy) fail(w http.ResponseWriter, status int, reason string) {
	p.tell(reason)
	http.Error(w, outside.Text(reason), status)
}

// told is what the user was told last: a child that tries again and again fails each time.
type told struct {
	mu           sync.Mutex
	method, text string
}

// begin notes that a request begins. One of another method is no further try.
func (t *told) begin(method string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if method != t.method {
		t.method, t.text = method, ""
	}
}

// tell says something of a request, once for all tries.
func (p *proxy) tell(text string) {
	p.told.mu.Lock()
	defer p.told.mu.Unlock()
	if text != p.told.text {
		say(p.Stderr, text)
		p.told.text = text
	}
}

package wrap

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/explain"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/web"
)

// proxy is the backend that the child sees.
//
// What the real backend answers is passed on as it is. Our own errors are 422:
// the child would try again after a 500, and say nothing of it. It does so, on
// purpose, after the 502 that stands for no answer.
type proxy struct {
	state    encryption.Target
	backend  *backend
	force    bool
	leaves   bool // see Options
	pins     Pins
	stderr   io.Writer
	password string

	elsewhere error // about a state that would be made a second time while there is none here
	refuses   bool  // what would make it, rather than only warn

	mux  *http.ServeMux
	work sync.RWMutex // held by each request of the child, and in the end by serve, for good

	lock    childLock              // what a child has, of ours and of the real backend
	used    atomic.Bool            // a state was asked for, or sent
	readers atomic.Int64           // for how many recipients of age the state was encrypted
	lineage atomic.Pointer[string] // of the state of this run, "" if there is none; nil until one was looked for
}

const (
	username = "statecrypt"
	ours     = http.StatusUnprocessableEntity
)

func newProxy(o Options, upstream *backend) *proxy {
	p := &proxy{
		state: o.State, backend: upstream, force: o.Force, leaves: o.Leave, pins: o.Pins, stderr: o.Stderr,
		password: rand.Text(), mux: http.NewServeMux(),
	}
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
	p.mux.ServeHTTP(w, r)
}

func (p *proxy) get(w http.ResponseWriter, r *http.Request) {
	p.used.Store(true)
	a := p.ask(r.Context(), w, p.backend.read, "", nil)
	if a == nil {
		return
	}
	if err := p.accept(r.Context(), a); err != nil {
		p.fail(w, ours, "the state in the backend: "+explain.Text(err, explain.Wrap{}))
		return
	}
	p.pass(w, a, a.isAbsent())
}

// accept looks at what the backend has, and puts the plaintext into the answer.
func (p *proxy) accept(ctx context.Context, a *answer) error {
	switch {
	case a.isAbsent() && p.pins != Pins{}:
		return errors.New("there is none, and -lineage or -minimum-serial say that there is; check the address")
	case a.isAbsent() && p.elsewhere != nil && p.refuses:
		return p.elsewhere
	case a.isAbsent():
		if p.lineage.Load() == nil {
			say(p.stderr, fmt.Sprintf("there is no state at %s yet; if there should be one, check the address",
				outside.Line(source.Public(p.backend.read.url), 300)))
			if p.elsewhere != nil {
				say(p.stderr, "warning: "+p.elsewhere.Error())
			}
			p.noteDoubts()
		}
		p.remember("")
	case a.status == http.StatusOK:
		return p.open(ctx, a)
	}
	return nil
}

func (p *proxy) open(ctx context.Context, a *answer) error {
	readers := Recipients(a.body)
	opened, err := p.state.DecryptInPlace(ctx, a.body)
	if errors.Is(err, encryption.ErrPlaintext) {
		return fmt.Errorf("%w; to encrypt it, run init with statecrypt wrap -encrypt-existing", err)
	}
	if err != nil {
		return err
	}
	lineage, err := p.pins.expect(opened.Data)
	if err != nil {
		return err
	}
	p.warn(opened)
	p.remember(lineage)
	p.readers.Store(int64(readers))
	a.body = opened.Data
	return nil
}

func (p *proxy) warn(opened *encryption.Opened) {
	if !opened.Encrypted {
		say(p.stderr, "the state in the backend is not encrypted; the next one that is written will be")
	}
	for _, warning := range opened.Warnings {
		say(p.stderr, warning.Text)
	}
}

// noteDoubts says what is probably not meant in a key that no state has been sealed with
// yet.
func (p *proxy) noteDoubts() {
	for _, doubt := range p.state.Doubts() {
		say(p.stderr, "the "+doubt)
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
	lineage, err := p.mayWrite(plain)
	if err == nil {
		err = p.lock.check(lockID(r))
	}
	var sealed []byte
	if err == nil {
		sealed, _, err = Seal(ctx, p.state, plain)
	}
	if err != nil {
		p.fail(w, ours, "the state was not written: "+explain.Text(err, explain.Wrap{Seals: true}))
		return
	}
	if a := p.ask(ctx, w, p.backend.write, lockID(r), sealed); a != nil {
		if a.succeeded() {
			p.lineage.Store(&lineage)
			p.noteRecipients(sealed)
		}
		p.pass(w, a, false)
	}
}

func (p *proxy) noteRecipients(sealed []byte) {
	if note := NoteRecipients(int(p.readers.Load()), sealed); note != "" {
		say(p.stderr, "the state in the backend: "+note)
	}
	p.readers.Store(int64(Recipients(sealed)))
}

// mayWrite returns the lineage of a state that may replace the one that is there.
func (p *proxy) mayWrite(plain []byte) (string, error) {
	if info, err := encryption.Inspect(plain); err != nil || info.Kind != encryption.KindState {
		return "", errors.New("it is not a state in plaintext; does an encryption block in the configuration encrypt it already?")
	}
	_, lineage, err := Label(plain)
	known := p.lineage.Load()
	switch {
	case err != nil || p.force:
	case known == nil:
		err = errors.New("the one that it would replace has not been read; use -force to overwrite it")
	case *known != "" && *known != lineage:
		err = fmt.Errorf("its lineage is %s, and that of the one that it would replace is %s; use -force to overwrite it",
			outside.Quoted(lineage, 100), outside.Quoted(*known, 100))
	}
	return lineage, err
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

func (p *proxy) remove(w http.ResponseWriter, r *http.Request) {
	if err := p.lock.check(lockID(r)); err != nil {
		p.fail(w, ours, "the state was not deleted: "+err.Error())
		return
	}
	if a := p.ask(context.WithoutCancel(r.Context()), w, p.backend.remove, lockID(r), nil); a != nil {
		if a.succeeded() {
			p.lineage.Store(new(string))
		}
		p.pass(w, a, false)
	}
}

func (p *proxy) receive(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, err := source.Read(r.Body, r.ContentLength, maxState)
	if err != nil {
		p.fail(w, ours, "what the child sent cannot be read: "+web.Reason(err, ""))
	}
	return body, err == nil
}

// ask asks the real backend. If there is no answer, the child is told, and ask
// returns nil. A child that has gone is no reason to complain.
func (p *proxy) ask(ctx context.Context, w http.ResponseWriter, to endpoint, id string, body []byte) *answer {
	a, err := p.backend.ask(ctx, to, id, body)
	switch {
	case err == nil:
		return a
	case ctx.Err() != nil:
		w.WriteHeader(http.StatusBadGateway)
	default:
		status := http.StatusBadGateway
		if errors.Is(err, errHuge) {
			status = ours
		}
		p.fail(w, status, fmt.Sprintf("%s to %s: %s", to.method, source.Origin(to.url), err))
	}
	return nil
}

// pass hands an answer on. One that is neither a success nor expected is shown
// as well: the child does not show it if it tries again.
func (p *proxy) pass(w http.ResponseWriter, a *answer, expected bool) {
	if !a.succeeded() && !expected {
		say(p.stderr, p.backend.answered(a.status))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) //nolint:gosec // no browser, and if the child is still there
}

func (p *proxy) fail(w http.ResponseWriter, status int, reason string) {
	say(p.stderr, reason)
	http.Error(w, reason, status)
}

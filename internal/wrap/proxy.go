package wrap

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/outside"
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
	stderr   io.Writer
	password string
	mux      *http.ServeMux

	mu      sync.Mutex
	locked  bool   // a lock was given out
	used    bool   // a state was asked for, or sent
	known   bool   // lineage is that of the state there
	lineage string // "" if there is none
}

const ours = http.StatusUnprocessableEntity

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	if subtle.ConstantTimeCompare([]byte(user+":"+password), []byte(username+":"+p.password)) != 1 {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	p.mux.ServeHTTP(w, r)
}

func (p *proxy) get(w http.ResponseWriter, r *http.Request) {
	p.note(func() { p.used = true })
	a := p.ask(r.Context(), w, p.backend.read, "", nil)
	if a == nil {
		return
	}
	absent := a.status == http.StatusNotFound || a.status == http.StatusNoContent || a.status == http.StatusOK && len(a.body) == 0
	if a.status == http.StatusOK && !absent {
		if err := p.open(r.Context(), a); err != nil {
			p.fail(w, ours, "the state in the backend: "+err.Error())
			return
		}
	} else if absent {
		p.note(func() { p.known, p.lineage = true, "" })
	}
	p.pass(w, a, absent)
}

// open puts the plaintext into an answer.
func (p *proxy) open(ctx context.Context, a *answer) error {
	opened, err := p.state.DecryptInPlace(ctx, a.body)
	if err != nil {
		return err
	}
	lineage, err := lineageOf(opened.Data)
	if err != nil {
		return err
	}
	if !opened.Encrypted {
		say(p.stderr, "the state in the backend is not encrypted; the next one that is written will be")
	}
	for _, warning := range opened.Warnings {
		say(p.stderr, warning.Text)
	}
	p.note(func() { p.known, p.lineage = true, lineage })
	a.body, a.media = opened.Data, "application/json"
	return nil
}

func (p *proxy) post(w http.ResponseWriter, r *http.Request) {
	p.note(func() { p.used = true })
	plain, ok := p.receive(w, r)
	if !ok {
		return
	}
	ctx := context.WithoutCancel(r.Context()) // what has arrived is written, even if the child has gone
	lineage, err := p.mayWrite(plain)
	var sealed []byte
	if err == nil {
		sealed, err = p.seal(ctx, plain)
	}
	if err != nil {
		p.fail(w, ours, "the state was not written: "+err.Error())
		return
	}
	if a := p.ask(ctx, w, p.backend.write, r.URL.Query().Get("ID"), sealed); a != nil {
		if a.status < 300 {
			p.note(func() { p.lineage = lineage })
		}
		p.pass(w, a, false)
	}
}

// mayWrite returns the lineage of a state that may replace the one that is there.
func (p *proxy) mayWrite(plain []byte) (string, error) {
	if info, err := encryption.Inspect(plain); err != nil || info.Kind != encryption.State {
		return "", errors.New("it is not a state in plaintext; does an encryption block in the configuration encrypt it already?")
	}
	lineage, err := lineageOf(plain)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil || p.force:
	case !p.known:
		err = errors.New("the one that it would replace has not been read; -force writes it all the same")
	case p.lineage != "" && p.lineage != lineage:
		err = fmt.Errorf("its lineage is %s, and that of the one that it would replace is %s; -force writes it all the same",
			outside.Quoted(lineage, 100), outside.Quoted(p.lineage, 100))
	}
	return lineage, err
}

func lineageOf(state []byte) (string, error) {
	var header struct {
		Lineage string `json:"lineage"`
	}
	if json.Unmarshal(state, &header) != nil { // the error may quote the state
		return "", errors.New("it is not a state in the format of Terraform")
	}
	return header.Lineage, nil
}

// seal encrypts a state, and opens it again: what is sent can be read.
func (p *proxy) seal(ctx context.Context, plain []byte) ([]byte, error) {
	sealed, err := p.state.Encrypt(ctx, plain)
	if err != nil {
		return nil, err
	}
	opened, err := p.state.Decrypt(ctx, sealed)
	switch {
	case err != nil:
		return nil, fmt.Errorf("what was sealed cannot be opened again: %w", err)
	case !opened.Encrypted:
		return nil, errors.New("the first method does not encrypt; here, unencrypted may only be a fallback")
	case !bytes.Equal(opened.Data, plain):
		return nil, errors.New("what was sealed is another state when it is opened again")
	}
	return sealed, nil
}

// relay passes a request on as it is. One to unlock is passed on even if the
// child does not wait for it.
func (p *proxy) relay(to endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if r.Method != "LOCK" {
			ctx = context.WithoutCancel(ctx)
		}
		body, ok := p.receive(w, r)
		if !ok {
			return
		}
		if a := p.ask(ctx, w, to, r.URL.Query().Get("ID"), body); a != nil {
			p.note(func() { p.locked = p.locked || r.Method == "LOCK" && a.status < 300 })
			p.pass(w, a, a.status == http.StatusConflict || a.status == http.StatusLocked)
		}
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
		p.fail(w, http.StatusBadGateway, fmt.Sprintf("%s to %s: %s", to.method, source.Origin(to.url), err))
	}
	return nil
}

// pass hands an answer on. One that is neither a success nor expected is shown
// as well: the child does not show it if it tries again.
func (p *proxy) pass(w http.ResponseWriter, a *answer, expected bool) {
	if a.status >= 300 && !expected {
		say(p.stderr, "the backend answered "+web.Status(a.status))
	}
	if a.media != "" {
		w.Header().Set("Content-Type", a.media)
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) //nolint:gosec // no browser, and if the child is still there
}

func (p *proxy) fail(w http.ResponseWriter, status int, reason string) {
	say(p.stderr, reason)
	http.Error(w, reason, status)
}

func (p *proxy) note(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// bypassed reports that a child took our lock, and had its state elsewhere.
func (p *proxy) bypassed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.locked && !p.used {
		return errors.New("a lock was taken here, and no state came: if one was written, it lies somewhere else, and is not encrypted")
	}
	return nil
}

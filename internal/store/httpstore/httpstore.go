// Package httpstore keeps a state on a server that speaks the protocol of Terraform's http
// backend. That has no versions: a write without a lock is compared with what is there
// first, and that is all.
package httpstore

import (
	"bytes"
	"context"
	"crypto/fips140"
	"crypto/md5" //nolint:gosec // Content-MD5 finds accidents, not attacks
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/answers"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/notice"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/httpsource"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// Kind is the http store.
func Kind() store.Kind {
	return store.Kind{Table: httpsource.Backend(), Place: "address", Older: "what the server keeps", Open: open}
}

// backend is the server, and what is known of its state.
type backend struct {
	store.Usual
	client              http.Client
	access              *httpsource.Access // of client
	warned              sync.Once          // of who can read it
	limit               int64              // bytes of an answer
	read, write, remove endpoint
	lock, unlock        endpoint // without a URL where there is none
	values              attr.Values

	mu   sync.Mutex
	held *store.Lock // what we have locked, nil if we have not
}

type endpoint struct {
	method string
	url    *url.URL
}

// open makes the client, and no connection yet.
func open(s store.Settings) (store.Store, error) {
	v := s.Values
	state, errState := address(v, "address")
	lock, errLock := address(v, "lock_address")
	unlock, errUnlock := address(v, "unlock_address")
	if lock != nil && unlock == nil {
		errUnlock = errors.Join(errUnlock, mistake(v, "unlock_address", "lock_address requires it: without it, each lock would stay"))
	}
	access, errConnect := httpsource.Connect(v)
	return &backend{
		client: http.Client{Transport: access, CheckRedirect: checkRedirect, Timeout: s.Patience},
		access: access,
		limit:  s.Limit,
		read:   endpoint{http.MethodGet, state},
		write:  endpoint{v.String("update_method"), state},
		remove: endpoint{http.MethodDelete, state},
		lock:   endpoint{v.String("lock_method"), lock},
		unlock: endpoint{v.String("unlock_method"), unlock},
		values: v,
	}, errors.Join(errState, errLock, errUnlock, errConnect)
}

// State is the one at the address, which the addresses of locks belong to.
func (b *backend) State(string) (store.State, error) { return b, nil }

// List is no part of the protocol.
func (b *backend) List(context.Context, string) ([]string, error) { return nil, store.ErrUnlisted }

// Close leaves nothing behind.
func (b *backend) Close() error {
	b.client.CloseIdleConnections()
	return nil
}

func (b *backend) String() string { return source.Public(b.read.url) }

// Address has the query, which may name the state, or sign the request.
func (b *backend) Address() string { return b.read.url.String() }

// HasLocks reports whether the server has locks.
func (b *backend) HasLocks() bool { return b.lock.url != nil }

// doubts are about what the backend was given.
func (b *backend) doubts() string {
	said := httpsource.Doubts("", b.values)
	text := said.Error()
	for _, odd := range source.Oddities(said, b.values) {
		text += "; " + odd
	}
	return text
}

// answered says what a status means that is not welcome.
func (b *backend) answered(status int, challenge string) string {
	text := "the backend answered " + web.Status(status)
	at := text + " at " + source.Origin(b.read.url)
	authenticates := b.values.Has("username") || b.values.Has("bearer_token") || b.values.Has("headers")
	return answers.Find([]answers.Row{
		{Status: "405", Text: text + "; check update_method, lock_method and unlock_method"},
		{Status: "401", Unless: challenge != recognize.Unsupported,
			Text: at + "; it requires " + challenge + "; have it accept Basic or a token"},
		{Status: "401 403", Unless: !authenticates, Text: at + "; check the credentials of the backend block" + b.doubts()},
		{Status: "401 403", Text: at + ", and no credentials were sent; set username and password in the backend " +
			"block, or STATECRYPT_HTTP_USERNAME and STATECRYPT_HTTP_PASSWORD"},
		{Text: web.Unexpected("the backend", status).Error() + b.doubts()},
	}, status, "", "").Text
}

// Retries are variables of Terraform's http backend.
func (b *backend) Retries() (variables []string) {
	for _, name := range []string{"retry_max", "retry_wait_min", "retry_wait_max"} {
		if b.values.Has(name) {
			variables = append(variables, fmt.Sprintf("TF_HTTP_%s=%d", strings.ToUpper(name), b.values.Int(name)))
		}
	}
	return variables
}

// address is the URL in an attribute, nil if there is none.
func address(v attr.Values, name string) (*url.URL, error) {
	text := v.String(name)
	u, err := url.Parse(text)
	switch {
	case text == "":
		return nil, nil //nolint:nilnil // no address is not a mistake
	case err != nil || !recognize.IsHTTP(text): // the error has the text in it
		return nil, mistake(v, name, "an http or https URL is required, such as https://example.com/state")
	case unfilled.MatchString(text):
		return nil, mistake(v, name, "it has a variable of the shell in it that was not expanded; variables are written ${var.NAME} here")
	case strings.Contains(u.Path, "//"):
		return nil, mistake(v, name, "it has two slashes in a row; is a variable in it empty?")
	case u.User != nil:
		return nil, mistake(v, name, "it has credentials in it; set username and password (in the environment, "+
			"STATECRYPT_HTTP_USERNAME and STATECRYPT_HTTP_PASSWORD)")
	}
	return u, nil
}

var unfilled = lazyregexp.New(`\$(\{[A-Za-z_]|[A-Z_]{2,}|\()`)

// mistake names the variable if the value comes from one.
func mistake(v attr.Values, name, what string) error {
	return source.Grant{Values: v, Found: true}.Errorf(name, "%s", what)
}

// checkRedirect lets a redirect lead nowhere else, because credentials would go
// along, and lets none turn a write into a read.
func checkRedirect(to *http.Request, via []*http.Request) error {
	switch {
	case len(via) > web.MaxRedirects:
		return web.Final("the backend redirected more than %d times; set the address to where it leads", web.MaxRedirects)
	case source.Origin(to.URL) != source.Origin(via[0].URL):
		return web.Final("the backend redirected to another address, and no credentials are sent there; " +
			"if the state is there, set that address")
	case to.Method != via[0].Method:
		return web.Final("the backend answered a %s with a redirect that would turn it into a %s; set the address to where it "+
			"leads", via[0].Method, to.Method)
	}
	return nil
}

// Read returns what is there. Its label is the version: lineage and serial, as far as
// there are any.
func (b *backend) Read(ctx context.Context) ([]byte, store.Version, error) {
	a, err := b.ask(ctx, b.read, "", nil)
	switch {
	case err != nil:
		return nil, "", err
	case a.isAbsent():
		return nil, "", nil
	case a.status != http.StatusOK:
		return nil, "", b.refused(a)
	}
	return a.body, label(a.body), nil
}

// Write sends a state, with the ID of the lock. The server may send back other bytes than
// it got, so that without a lock labels are compared.
func (b *backend) Write(ctx context.Context, data []byte, read store.Version) (store.Version, error) {
	id, err := b.mayReplace(ctx, read)
	if err == nil {
		_, err = b.send(ctx, b.write, id, data)
	}
	return label(data), err
}

// Remove has the server forget the state.
func (b *backend) Remove(ctx context.Context, read store.Version) error {
	id, err := b.mayReplace(ctx, read)
	if err == nil {
		_, err = b.send(ctx, b.remove, id, nil)
	}
	return err
}

// mayReplace returns the ID of the server's lock that we have. Without one, the state must
// be the one that was read.
func (b *backend) mayReplace(ctx context.Context, read store.Version) (id string, err error) {
	if held := b.ours(); held != nil && b.HasLocks() {
		return held.ID, nil
	}
	_, now, err := b.Read(ctx)
	if err == nil && now != read {
		err = store.ErrChanged
	}
	return "", err
}

// Lock asks the server for the lock, if it has any.
func (b *backend) Lock(ctx context.Context, lock store.Lock) error {
	if b.lock.url != nil {
		_, err := b.send(ctx, b.lock, "", lock.JSON())
		if held, ok := errors.AsType[*store.HeldError](err); err != nil && (!ok || lock.ID == "" || held.By == nil || held.By.ID != lock.ID) {
			return err
		}
	}
	b.keep(&lock)
	return nil
}

// Holder cannot be asked for.
func (b *backend) Holder(context.Context) (*store.Lock, error) { return nil, store.ErrUntold }

// Unlock gives back a lock, ours or that of somebody else, by its ID.
func (b *backend) Unlock(ctx context.Context, id string) error {
	body, _ := json.Marshal(struct{ ID string }{id}) // as OpenTofu does by itself
	held := b.ours()
	ours := held != nil && held.ID == id
	if ours {
		body = held.JSON()
	}
	if b.unlock.url != nil && (!ours || b.lock.url != nil) {
		if _, err := b.send(ctx, b.unlock, "", body); err != nil {
			return err
		}
	}
	if ours {
		b.keep(nil)
	}
	return nil
}

func (b *backend) ours() *store.Lock {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

func (b *backend) keep(lock *store.Lock) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = lock
}

// send sends a request that has to succeed.
func (b *backend) send(ctx context.Context, to endpoint, id string, body []byte) (*answer, error) {
	a, err := b.ask(ctx, to, id, body)
	if err == nil && !a.succeeded() {
		err = b.refused(a)
	}
	return a, err
}

// refused is an answer that is not welcome.
func (b *backend) refused(a *answer) error {
	e := &store.AnswerError{Status: a.status, Body: a.body, Text: b.answered(a.status, a.challenge)}
	switch {
	case a.isHeld():
		held := &store.HeldError{}
		if by, ok := store.ParseLock(a.body); ok {
			held.By = &by
		}
		e.Err = held
	case a.status == http.StatusUnauthorized || a.status == http.StatusForbidden:
		e.Err = store.ErrDenied
	}
	return e
}

// label is what an envelope, or a state in plaintext, says of itself.
func label(file []byte) store.Version {
	serial, lineage, err := store.Label(file)
	if err != nil || serial == nil {
		return store.Digest(file)
	}
	return store.Version(fmt.Sprintf("%d %s", *serial, lineage))
}

var exposed = "warning: " +
	netfail.Unencrypted("The credentials were", "the address begins with http", "read them, and replace the state").Text

// answer is one of the server.
type answer struct {
	status    int
	body      []byte
	challenge string // see recognize.Challenge
}

func (a *answer) succeeded() bool { return a.status < 300 }

// isHeld reports whether the answer is that somebody has the lock.
func (a *answer) isHeld() bool {
	return a.status == http.StatusConflict || a.status == http.StatusLocked
}

// isAbsent reports whether the answer is that there is no state.
func (a *answer) isAbsent() bool {
	return a.status == http.StatusNotFound || a.status == http.StatusNoContent || a.status == http.StatusOK && len(a.body) == 0
}

// ask sends one request. Id is that of the lock.
func (b *backend) ask(ctx context.Context, to endpoint, id string, body []byte) (*answer, error) {
	req, err := to.request(ctx, id, body)
	if err != nil { // it has the URL in it
		return nil, errors.New("the request cannot be made; check the addresses and methods of the backend")
	}
	resp, err := b.client.Do(req) //nolint:gosec // the caller's own backend
	if err == nil {
		defer resp.Body.Close()
		if b.access.Exposes(req) {
			b.warned.Do(func() { notice.Show(ctx, exposed) })
		}
		body, err = web.ReadBody(resp, b.limit, io.Discard)
	}
	if source.IsTooLarge(err) || errors.Is(err, meter.ErrExpands) {
		err = fmt.Errorf("the answer is refused: %s", web.Reason(err, "")) // another try would only take as long again
	} else if err != nil {
		err = &store.UnansweredError{Err: errors.New(web.Reason(err, "set client_ca_certificate_pem"))}
	}
	if err != nil {
		return nil, fmt.Errorf("%s to %s: %w", to.method, source.Origin(to.url), err)
	}
	return &answer{resp.StatusCode, body, recognize.Challenge(resp.Header.Values("WWW-Authenticate"))}, nil
}

func (to endpoint) request(ctx context.Context, id string, body []byte) (*http.Request, error) {
	u := *to.url
	if id != "" {
		query := u.Query()
		query.Set("ID", id)
		u.RawQuery = query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, to.method, u.String(), bytes.NewReader(body))
	if err == nil && len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
		if !fips140.Enabled() { // there, MD5 may be forbidden
			sum := md5.Sum(body) //nolint:gosec // see above
			req.Header.Set("Content-MD5", base64.StdEncoding.EncodeToString(sum[:]))
		}
	}
	return req, err
}

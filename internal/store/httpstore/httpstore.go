// Package httpstore keeps a state on a server that implements the protocol of Terraform's http backend. The protocol
// has no versions, and a server's success report proves little. Therefore a write first compares the state on the
// server, even under a lock, and package careful reads the state back.
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
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/answers"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/notice"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/httpsource"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
)

// Kind returns the http store.
func Kind() store.Kind {
	return store.Kind{
		Table: httpsource.Backend(), Named: "address", Older: "those kept by the server", Counts: true, Looks: true, Open: open,
	}
}

// backend is a server that stores one state.
type backend struct {
	client              http.Client
	access              *httpsource.Access // the transport of client
	warned              sync.Once          // for the warning about an unencrypted connection
	limit               int64              // the maximum response size, in bytes
	read, write, remove endpoint
	lock, unlock        endpoint // the URL is nil if there are no locks
	values              attr.Values
	held                atomic.Pointer[store.Lock] // our lock, or nil
}

type endpoint struct {
	method string
	url    *url.URL
}

// open creates the client. It does not connect.
func open(s store.Settings) (store.Store, error) {
	v := s.Values
	state, errState := address(v, "address")
	lock, errLock := address(v, "lock_address")
	unlock, errUnlock := address(v, "unlock_address")
	if state == nil && errState == nil {
		errState = v.Errorf("address", "it is empty; check whether a variable is empty")
	}
	if lock != nil && unlock == nil {
		errUnlock = errors.Join(errUnlock, v.Errorf("unlock_address", "lock_address is set, but unlock_address is not, so locks could not be "+
			"released; set both arguments, or neither"))
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

// State returns the state at the address. Locks have their own addresses.
func (b *backend) State(string) (store.State, error) { return b, nil }

// List returns [store.ErrUnlisted], because the protocol cannot list states.
func (b *backend) List(context.Context, string) ([]string, error) { return nil, store.ErrUnlisted }

// Close closes idle connections.
func (b *backend) Close() error {
	b.client.CloseIdleConnections()
	return nil
}

func (b *backend) String() string { return source.Public(b.read.url) }

// Address returns the address with its query, which may name the state or contain a signature.
func (b *backend) Address() string { return b.read.url.String() }

// Properties returns the properties of the server, according to the block.
func (b *backend) Properties() store.Properties {
	return store.Properties{HasLocks: b.lock.url != nil, Retries: b.retries(), Unkept: b.unkept()}
}

// doubts returns a description of probable mistakes in the settings, to be added to an error message.
func (b *backend) doubts() string {
	return httpsource.Doubts(b.values)
}

// answered returns the error message for an unsuccessful status.
func (b *backend) answered(status int, challenge string) string {
	text := "the backend answered " + web.Status(status)
	at := text + " at " + source.Origin(b.read.url)
	authenticates := b.values.Has("username") || b.values.Has("bearer_token") || b.values.Has("headers")
	return answers.Find([]answers.Row{
		{Status: "405", Text: text + "; check update_method, lock_method and unlock_method"},
		{Status: "401", Unless: challenge != recognize.Unsupported,
			Text: at + ", because it requires " + challenge + "; configure it to accept Basic or a token"},
		{Status: "401", Unless: !authenticates, Text: at + "; check the credentials of the backend block" + b.doubts()},
		{Status: "403", Unless: !authenticates,
			Text: at + "; check the credentials of the backend block, and whether they allow reading, locking and writing" + b.doubts()},
		{Status: "401 403", Text: at + ", and no credentials were sent; set username and password in the backend block, or set " +
			"STATECRYPT_HTTP_USERNAME and STATECRYPT_HTTP_PASSWORD"},
		{Status: "409 423", Text: web.Unexpected("the backend", status).Error()}, // which no credentials would change
		{Text: web.Unexpected("the backend", status).Error() + b.doubts()},
	}, status, "", "").Text
}

// retries returns the retry arguments that the block sets, by name.
func (b *backend) retries() map[string]int64 {
	set := map[string]int64{}
	for _, name := range []string{"retry_max", "retry_wait_min", "retry_wait_max"} {
		if b.values.Has(name) {
			set[name] = b.values.Int(name)
		}
	}
	return set
}

// address returns the URL in an attribute, or nil if the attribute is not set.
func address(v attr.Values, name string) (*url.URL, error) {
	text := v.String(name)
	u, err := url.Parse(text)
	switch {
	case text == "":
		return nil, nil //nolint:nilnil // the address is optional
	case err != nil || !recognize.IsHTTP(text): // err contains the URL
		return nil, v.Errorf(name, "this is not an http or https URL; write a URL like https://example.com/state")
	case unfilled.MatchString(text):
		return nil, v.Errorf(name, "the address contains a shell variable that was not expanded; write variables as ${var.NAME}")
	case strings.Contains(u.Path, "//"):
		return nil, v.Errorf(name, "the address contains two slashes in a row; check whether a variable is empty")
	case u.User != nil:
		return nil, v.Errorf(name, "the address contains credentials; move them to username and password, or to STATECRYPT_HTTP_USERNAME and "+
			"STATECRYPT_HTTP_PASSWORD in the environment")
	}
	return u, nil
}

var unfilled = lazyregexp.New(`\$(\{[A-Za-z_]|[A-Z_]{2,}|\()`)

// checkRedirect returns an error if a redirect leads to another server, which would receive the credentials, or if it
// turns a write into a read.
func checkRedirect(to *http.Request, via []*http.Request) error {
	switch {
	case len(via) > web.MaxRedirects:
		return web.Final("the backend redirected more than %d times; set the final address", web.MaxRedirects)
	case source.Origin(to.URL) != source.Origin(via[0].URL):
		return web.Final("the backend redirected to an address to which no credentials are sent; if the state is there, set that address")
	case to.Method != via[0].Method:
		return web.Final("the backend answered %s with a redirect that would turn the request into %s; set the final "+
			"address", via[0].Method, to.Method)
	}
	return nil
}

// Read returns the state. Its version is [store.Identity], because a server may return other bytes than it received.
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
	return a.body, store.Identity(a.body), nil
}

// Write sends a state with the lock ID. It returns no version if the response contains a different file: a plain file
// server responds to a POST with the existing file, and stores nothing.
func (b *backend) Write(ctx context.Context, data []byte, read store.Version) (store.Version, error) {
	a, err := b.change(ctx, b.write, data, read)
	done := []int{http.StatusOK, http.StatusCreated, http.StatusNoContent}
	if err != nil || !slices.Contains(done, a.status) || len(a.body) > 0 && !bytes.Equal(a.body, data) {
		return "", err
	}
	return store.Identity(data), nil
}

// unkept returns the error for a state that the server did not store. It names the method, which may be wrong for a
// plain file server.
func (b *backend) unkept() error {
	return fmt.Errorf("the backend confirmed %s, but now holds a different state or no state; %s",
		b.write.method, b.otherMethod("check the server's log"))
}

// otherMethod returns advice to write with PUT, followed by the advice in otherwise. If the method is already PUT, it
// returns otherwise alone.
func (b *backend) otherMethod(otherwise string) string {
	if b.write.method == http.MethodPut {
		return otherwise
	}
	return `if it is a file server (WebDAV), set update_method = "PUT". Otherwise, ` + otherwise
}

// Remove deletes the state on the server.
func (b *backend) Remove(ctx context.Context, read store.Version) error {
	_, err := b.change(ctx, b.remove, nil, read)
	return err
}

// change sends a write or a removal if the server still has the version that was read. It always compares the versions,
// because a server that grants a lock may not keep others out.
func (b *backend) change(ctx context.Context, to endpoint, data []byte, read store.Version) (*answer, error) {
	switch _, now, err := b.Read(ctx); {
	case err != nil:
		return nil, err
	case now != read:
		return nil, store.ErrChanged
	}
	id := ""
	if held := b.held.Load(); held != nil && b.lock.url != nil {
		id = held.ID
	}
	a, err := b.ask(ctx, to, id, data)
	if err == nil && !a.succeeded() {
		err = b.refusedChange(a, to.method, read == "")
	}
	return a, err
}

// refusedChange returns the error for a refused write or removal. A conflict is treated as a lock only if the server
// names the lock holder.
func (b *backend) refusedChange(a *answer, method string, first bool) error {
	text := "the backend answered " + web.Status(a.status) + " to " + method
	by, _ := a.holder()
	switch {
	case a.status == http.StatusConflict && by.ID != "":
		return b.refused(a)
	case a.status == http.StatusConflict && method == b.remove.method:
		text += "; check the server's log"
	case a.status == http.StatusConflict && first:
		text += "; if it is a file server (WebDAV), create the folder of the address on the server"
	case a.status == http.StatusConflict:
		text += ", perhaps because it already has a state with this serial; check which state is there"
	case a.status == http.StatusMethodNotAllowed && method == b.write.method:
		text += "; " + b.otherMethod("check update_method")
	case a.status == http.StatusNotFound && method != b.remove.method:
		text += "; " + b.otherMethod("check the address")
	default:
		return b.refused(a)
	}
	return &store.AnswerError{Status: a.status, Body: a.body, Text: text}
}

// Lock requests the lock from the server, if it has locks. Only status 200 grants the lock, as in Terraform. A plain
// file server that responds with 201 has created an empty file, and locked that file for another purpose.
func (b *backend) Lock(ctx context.Context, lock store.Lock) error {
	if b.lock.url != nil {
		a, err := b.send(ctx, b.lock, "", lock.JSON())
		if err == nil && !a.isOfTerraform() {
			return b.notTerraforms(b.lock, a)
		}
		if held, ok := errors.AsType[*store.HeldError](err); err != nil && (!ok || lock.ID == "" || held.By == nil || held.By.ID != lock.ID) {
			return err
		}
	}
	b.held.Store(&lock)
	return nil
}

// Holder returns [store.ErrHolderUnknown], because the protocol has no request for the holder.
func (b *backend) Holder(context.Context) (*store.Lock, error) { return nil, store.ErrHolderUnknown }

// Unlock releases the lock with this ID, even if it belongs to another run.
func (b *backend) Unlock(ctx context.Context, id string) error {
	body, _ := json.Marshal(struct{ ID string }{id}) // the body that OpenTofu itself sends
	held := b.held.Load()
	ours := held != nil && held.ID == id
	if ours {
		body = held.JSON()
	}
	if b.unlock.url != nil && (!ours || b.lock.url != nil) {
		a, err := b.send(ctx, b.unlock, "", body)
		if answer, ok := errors.AsType[*store.AnswerError](err); ok && a.isHeld() {
			answer.Text = fmt.Sprintf("the backend answered %s to the release of the lock, probably because the lock has another ID%s",
				web.Status(a.status), b.doubts())
		}
		if err == nil && !a.isOfTerraform() {
			err = b.notTerraforms(b.unlock, a)
		}
		if err != nil {
			return err
		}
	}
	if ours {
		b.held.Store(nil)
	}
	return nil
}

const withoutLocks = "For a file server, remove lock_address and unlock_address"

// notTerraforms returns the error for a response to a lock or unlock request that does not follow Terraform's
// protocol.
func (b *backend) notTerraforms(to endpoint, a *answer) error {
	text := fmt.Sprintf("the backend answered %s to %s, but only 200 OK confirms a lock or its release; check lock_address, unlock_address "+
		"and their methods", web.Status(a.status), to.method)
	if a.isWebDAV {
		text = fmt.Sprintf("the backend answered %s with a lock of WebDAV, but that lock would block the writes of this run", to.method)
	}
	text += ". " + withoutLocks
	return &store.AnswerError{Status: a.status, Body: a.body, Text: text}
}

// send sends a lock or unlock request. It returns an error if the response does not report success. A plain file server
// responds with 400 or 415 to a body that is not a WebDAV lock.
func (b *backend) send(ctx context.Context, to endpoint, id string, body []byte) (*answer, error) {
	a, err := b.ask(ctx, to, id, body)
	switch {
	case err != nil || a.succeeded():
		return a, err
	case a.status == http.StatusBadRequest || a.status == http.StatusUnsupportedMediaType:
		return a, &store.AnswerError{Status: a.status, Body: a.body, Text: fmt.Sprintf("the backend answered %s to %s; check lock_address, "+
			"unlock_address and their methods. %s", web.Status(a.status), to.method, withoutLocks)}
	}
	return a, b.refused(a)
}

// refused returns the error for an unsuccessful response.
func (b *backend) refused(a *answer) error {
	e := &store.AnswerError{Status: a.status, Body: a.body, Text: b.answered(a.status, a.challenge)}
	switch {
	case a.isHeld():
		held := &store.HeldError{}
		if by, ok := a.holder(); ok {
			held.By = by
		}
		e.Err = held
	case a.status == http.StatusUnauthorized || a.status == http.StatusForbidden:
		e.Err = store.ErrDenied
	}
	return e
}

var exposed = "warning: " +
	netfail.Unencrypted("The credentials were", "the address begins with http", "read them, and replace the state").Text

// answer is a response from the server.
type answer struct {
	status    int
	body      []byte
	challenge string // see recognize.Challenge
	isWebDAV  bool   // whether the response contains a WebDAV lock
}

// isOfTerraform reports whether the response grants or releases a lock in Terraform's protocol. A plain file server
// instead responds with 201 if it has created an empty file to lock it, and with 204 to an unlock request.
func (a *answer) isOfTerraform() bool { return a.status == http.StatusOK && !a.isWebDAV }

func (a *answer) succeeded() bool { return a.status < 300 }

// isHeld reports whether the response means that the lock is held.
func (a *answer) isHeld() bool {
	return a.status == http.StatusConflict || a.status == http.StatusLocked
}

// holder returns the lock in the response, or false if there is none.
func (a *answer) holder() (*store.Lock, bool) {
	by, ok := store.ParseLock(a.body)
	return &by, ok && a.isHeld()
}

// isAbsent reports whether the response means that there is no state.
func (a *answer) isAbsent() bool {
	return a.status == http.StatusNotFound || a.status == http.StatusNoContent || a.status == http.StatusOK && len(a.body) == 0
}

// ask sends one request. id is the lock ID, or an empty string.
func (b *backend) ask(ctx context.Context, to endpoint, id string, body []byte) (*answer, error) {
	req, err := to.request(ctx, id, body)
	if err != nil { // err contains the URL
		return nil, errors.New("could not create the request; check the addresses and methods of the backend")
	}
	resp, err := b.client.Do(req) //nolint:gosec // the caller's own backend
	if err == nil {
		defer resp.Body.Close()
		if b.access.Exposes(req) {
			b.warned.Do(func() { notice.Show(ctx, exposed) })
		}
		body, err = web.ReadBody(resp, b.limit, io.Discard)
	}
	switch {
	case err == nil:
	case meter.IsTooLarge(err) || errors.Is(err, meter.ErrExpands):
		err = fmt.Errorf("the answer was refused: %s", web.Reason(err, "")) // another attempt would take just as long
	case errors.Is(ctx.Err(), context.Canceled):
		err = &store.UnansweredError{Err: context.Cause(ctx)}
	default:
		err = &store.UnansweredError{Err: errors.New(web.Reason(err, "set client_ca_certificate_pem"))}
	}
	if err != nil {
		return nil, fmt.Errorf("%s to %s: %w", to.method, source.Origin(to.url), err)
	}
	return &answer{
		status: resp.StatusCode, body: body, challenge: recognize.Challenge(resp.Header.Values("WWW-Authenticate")),
		isWebDAV: resp.Header.Get("Lock-Token") != "",
	}, nil
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
		if !fips140.Enabled() { // FIPS 140 may forbid MD5
			sum := md5.Sum(body) //nolint:gosec // Content-MD5 finds accidents, not attacks
			req.Header.Set("Content-MD5", base64.StdEncoding.EncodeToString(sum[:]))
		}
	}
	return req, err
}

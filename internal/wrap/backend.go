package wrap

import (
	"bytes"
	"context"
	"crypto/fips140"
	"crypto/md5" //nolint:gosec // Content-MD5 finds accidents, not attacks
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/syntax"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/httpsource"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/web"
)

const (
	maxState = 512 << 20       // bytes, of a state and of any other body
	patience = 5 * time.Minute // for one request to the real backend
)

// backend is the real one.
type backend struct {
	client              http.Client
	limit               int64 // bytes of an answer
	read, write, remove endpoint
	lock, unlock        endpoint // without a URL where there is none
	retries             []string // variables of the child
	authenticates       bool     // it has credentials
	doubts              string   // what is probably wrong with what it was given
}

type endpoint struct {
	method string
	url    *url.URL
}

// Backends are the kinds that the block of [Options] may have.
func Backends() []attr.Table { return []attr.Table{httpsource.Backend()} }

// newBackend reads the block of the settings, or the variables in its place.
func newBackend(block *attr.Entry, lookup attr.LookupEnv) (*backend, error) {
	table := httpsource.Backend()
	named := block != nil
	if !named {
		block = attr.NewEntry("backend.http", table, nil)
	}
	v, err := block.Decode(table, lookup)
	if err != nil {
		if !named {
			err = fmt.Errorf("%w; the file of the settings has no block backend \"http\": "+
				"add backend \"http\" { address = \"https://HOST/PATH\" }", err)
		}
		if ignored, _ := lookup("TF_HTTP_ADDRESS"); ignored != "" {
			err = fmt.Errorf("%w; TF_HTTP_ADDRESS is not used, so that nobody writes there without wrap", err)
		}
		return nil, err
	}
	return connect(v)
}

// noteVariables names variables that say nothing: misspelt ones, and those whose argument
// the block has, with another value.
func noteVariables(o Options) {
	const prefix = "STATECRYPT_HTTP_"
	lookup := world.Lookup(o.Environ)
	var known []string
	for _, a := range httpsource.Backend().Attrs {
		known = append(known, a.Env...)
		for _, name := range a.Env {
			if given, _ := lookup(name); given != "" && differs(o.Backend, a.Name, given) {
				say(o.Stderr, fmt.Sprintf("%s is not used: the block backend \"http\" has another %s", name, a.Name))
			}
		}
	}
	for _, pair := range o.Environ {
		name, value, _ := strings.Cut(pair, "=")
		if upper := strings.ToUpper(name); value != "" && strings.HasPrefix(upper, prefix) && !slices.Contains(known, upper) {
			say(o.Stderr, fmt.Sprintf("%s is not used: there is no such variable%s", outside.Line(name, 100), syntax.Suggest(upper, known)))
		}
	}
}

// differs reports whether the block sets an argument to another text than this one.
func differs(block *attr.Entry, argument, text string) bool {
	if block == nil {
		return false
	}
	setting, ok := block.Settings[argument]
	if !ok || !setting.IsSet() || setting.Err != nil {
		return false
	}
	value, _ := setting.Value.Unmark()
	return value.Type() == cty.String && value.IsKnown() && !value.IsNull() && value.AsString() != text
}

// connect makes the client, and no connection yet.
func connect(v attr.Values) (*backend, error) {
	state, errState := address(v, "address")
	lock, errLock := address(v, "lock_address")
	unlock, errUnlock := address(v, "unlock_address")
	if lock != nil && unlock == nil {
		errUnlock = errors.Join(errUnlock, mistake(v, "unlock_address", "lock_address requires it: without it, each lock would stay"))
	}
	transport, errConnect := httpsource.Connect(v)
	variables, errRetries := retries(v)
	return &backend{
		client: http.Client{Transport: transport, CheckRedirect: checkRedirect, Timeout: patience},
		limit:  maxState,
		read:   endpoint{http.MethodGet, state},
		write:  endpoint{v.String("update_method"), state},
		remove: endpoint{http.MethodDelete, state},
		lock:   endpoint{v.String("lock_method"), lock},
		unlock: endpoint{v.String("unlock_method"), unlock},

		retries: variables,

		doubts:        doubts(v),
		authenticates: v.Has("username") || v.Has("bearer_token") || v.Has("headers"),
	}, errors.Join(errState, errLock, errUnlock, errConnect, errRetries)
}

func doubts(v attr.Values) string {
	text := httpsource.Doubts("", v).Error()
	source.EachOddity(v, httpsource.Backend().Attrs, func(name, odd string) { text += "; " + name + " " + odd })
	return text
}

// answered says what a status means that is not welcome.
func (b *backend) answered(status int) string {
	text := "the backend answered " + web.Status(status)
	switch {
	case status == http.StatusMethodNotAllowed:
		return text + "; check update_method, lock_method and unlock_method"
	case status != http.StatusUnauthorized && status != http.StatusForbidden:
		return web.Unexpected("the backend", status).Error() + b.doubts
	case b.authenticates:
		return text + " at " + source.Origin(b.read.url) + "; check the credentials of the backend block" + b.doubts
	}
	return text + " at " + source.Origin(b.read.url) + ", and no credentials were sent; set username and password in the backend " +
		"block, or STATECRYPT_HTTP_USERNAME and STATECRYPT_HTTP_PASSWORD"
}

// retries are the variables that tell the child how often to try again.
func retries(v attr.Values) (variables []string, err error) {
	for _, name := range []string{"retry_max", "retry_wait_min", "retry_wait_max"} {
		n, failed := v.Int(name, 0, 3600)
		if err = errors.Join(err, failed); v.Has(name) {
			variables = append(variables, fmt.Sprintf("TF_HTTP_%s=%d", strings.ToUpper(name), n))
		}
	}
	return variables, err
}

// address is the URL in an attribute, nil if there is none.
func address(v attr.Values, name string) (*url.URL, error) {
	text := v.String(name)
	u, err := url.Parse(text)
	switch {
	case text == "":
		return nil, nil //nolint:nilnil // no address is not a mistake
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https": // the error has the text in it
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

// errHuge means that another try would only take as long again.
var errHuge = errors.New("the answer is refused")

// answer is one of the real backend.
type answer struct {
	status int
	body   []byte
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
		body, err = web.ReadBody(resp, b.limit, io.Discard)
	}
	if source.IsTooLarge(err) || errors.Is(err, meter.ErrExpands) {
		return nil, fmt.Errorf("%w: %s", errHuge, web.Reason(err, ""))
	}
	if err != nil {
		return nil, errors.New(web.Reason(err, "set client_ca_certificate_pem"))
	}
	return &answer{status: resp.StatusCode, body: body}, nil
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

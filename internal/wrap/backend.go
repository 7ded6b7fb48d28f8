package wrap

import (
	"bytes"
	"cmp"
	"context"
	"crypto/fips140"
	"crypto/md5" //nolint:gosec // Content-MD5 finds accidents, not attacks
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/httpsource"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/web"
)

const (
	maxState = 512 << 20       // bytes, of a state and of any other body
	patience = 5 * time.Minute // for one request to the real backend
)

// backend is the real one, as TF_HTTP_* describe it.
type backend struct {
	client              http.Client
	limit               int64 // bytes of an answer
	read, write, remove endpoint
	lock, unlock        endpoint // without a URL where there is none
}

type endpoint struct {
	method string
	url    *url.URL
}

// newBackend reads the variables of Terraform's http backend.
func newBackend(lookup attr.LookupEnv) (*backend, error) {
	state, err := address(lookup, "TF_HTTP_ADDRESS")
	lock, lockErr := address(lookup, "TF_HTTP_LOCK_ADDRESS")
	unlock, unlockErr := address(lookup, "TF_HTTP_UNLOCK_ADDRESS")
	if err := errors.Join(err, lockErr, unlockErr); err != nil {
		return nil, err
	}
	if state == nil {
		return nil, errors.New("TF_HTTP_ADDRESS is not set: it has to say where the backend keeps the state")
	}
	transport, err := httpsource.Variables(state, lookup)
	method := func(name, otherwise string) string {
		value, _ := lookup(name)
		return cmp.Or(value, otherwise)
	}
	return &backend{
		client: http.Client{Transport: transport, CheckRedirect: checkRedirect, Timeout: patience},
		limit:  maxState,
		read:   endpoint{http.MethodGet, state},
		write:  endpoint{method("TF_HTTP_UPDATE_METHOD", http.MethodPost), state},
		remove: endpoint{http.MethodDelete, state},
		lock:   endpoint{method("TF_HTTP_LOCK_METHOD", "LOCK"), lock},
		unlock: endpoint{method("TF_HTTP_UNLOCK_METHOD", "UNLOCK"), unlock},
	}, err
}

// address is the URL in a variable, nil if there is none.
func address(lookup attr.LookupEnv, variable string) (*url.URL, error) {
	text, _ := lookup(variable)
	u, err := url.Parse(text)
	switch {
	case text == "":
		return nil, nil //nolint:nilnil // no address is not a mistake
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https": // the error has the text in it
		return nil, fmt.Errorf("%s is not an http or https URL", variable)
	case u.User != nil:
		return nil, fmt.Errorf("%s has credentials in it; set TF_HTTP_USERNAME and TF_HTTP_PASSWORD", variable)
	}
	return u, nil
}

// checkRedirect lets a redirect lead nowhere else, because credentials would go
// along, and lets none turn a write into a read.
func checkRedirect(to *http.Request, via []*http.Request) error {
	switch {
	case len(via) >= 10:
		return web.Final("the backend redirected more than %d times", len(via))
	case source.Origin(to.URL) != source.Origin(via[0].URL):
		return web.Final("the backend redirected to another address, and no credentials are sent there; " +
			"if that is where the state lies, set TF_HTTP_ADDRESS to it")
	case to.Method != via[0].Method:
		return web.Final("the backend answered a %s with a redirect that would turn it into a %s", via[0].Method, to.Method)
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

// ask sends one request. Id is that of the lock.
func (b *backend) ask(ctx context.Context, to endpoint, id string, body []byte) (*answer, error) {
	u := *to.url
	if id != "" {
		query := u.Query()
		query.Set("ID", id)
		u.RawQuery = query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, to.method, u.String(), bytes.NewReader(body))
	if err != nil { // it has the URL in it
		return nil, errors.New("the request cannot be made; check the TF_HTTP_* variables for addresses and methods")
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
		if !fips140.Enabled() { // there, MD5 may be forbidden
			sum := md5.Sum(body) //nolint:gosec // see above
			req.Header.Set("Content-MD5", base64.StdEncoding.EncodeToString(sum[:]))
		}
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
		return nil, errors.New(web.Reason(err, "set TF_HTTP_CLIENT_CA_CERTIFICATE_PEM"))
	}
	return &answer{status: resp.StatusCode, body: body}, nil
}

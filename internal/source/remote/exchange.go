package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

const (
	// maxDocument is the maximum size of an API document without outputs, in bytes. It leaves room for the
	// list of resources in a state version, although that list is not used.
	maxDocument = 8 << 20
	mediaType   = "application/vnd.api+json"
)

// exchange sends the requests of one fetch, one after the other.
type exchange struct {
	*location
	anonymous bool // whether requests carry no token

	read      int64    // number of bytes read of documents with outputs
	asked     *url.URL // URL of the last request
	tokenSent bool     // whether the last request carried a token
	warnings  []source.Warning
}

// get sends a request, repeats it if that may help, and passes the response to read. If the status is not
// 200, it returns a [refusal].
func (x *exchange) get(ctx context.Context, from *url.URL, accept string, read func(*http.Response) error) error {
	x.asked, x.tokenSent = from, false
	asks := web.Wire{
		Patience: x.patience, Transport: x, Redirects: true, Backoff: wait,
		Trust: "set client_ca_certificate_pem in {credentials} for this URL",
	}
	header := http.Header{"Accept": {accept}, "Accept-Encoding": {"identity"}}
	return asks.Get(ctx, from, header, func(resp *http.Response) error {
		if resp.StatusCode != http.StatusOK {
			return web.Final("%w", refusal(resp.StatusCode))
		}
		return read(resp)
	})
}

// getDocument reads an API document of at most maxDocument bytes and decodes its JSON into the value that into
// points to.
func (x *exchange) getDocument(ctx context.Context, from *url.URL, into any) error {
	return x.get(ctx, from, mediaType, func(resp *http.Response) error {
		_, err := readJSON(resp, maxDocument, errLong, into)
		return err
	})
}

// getOutputs works like [exchange.getDocument], for documents with output values. In one fetch, these
// documents may exceed the size limit of a state by maxDocument bytes in total.
func (x *exchange) getOutputs(ctx context.Context, from *url.URL, into any) error {
	limit := min(x.limit, math.MaxInt64-maxDocument) + maxDocument - x.read
	return x.get(ctx, from, mediaType, func(resp *http.Response) error {
		n, err := readJSON(resp, limit, meter.TooLarge(x.limit), into)
		x.read += n
		return err
	})
}

// RoundTrip sends one request, which may follow a redirect, with the credentials for its own URL. It adds the
// token to a copy of the request, so that no other code sees the token.
func (x *exchange) RoundTrip(req *http.Request) (*http.Response, error) {
	a, err := x.accessTo(req.Context(), req.URL)
	if err != nil {
		return nil, web.Final("%w", err)
	}
	var token string
	if !x.anonymous {
		if token, err = x.tokenFor(req.URL); err != nil {
			return nil, web.Final("%w", err)
		}
	}
	x.asked, x.tokenSent = req.URL, token != ""
	wire := req.Clone(req.Context())
	wire.Header.Del("Referer") // it contains the URL that redirected here, which may be signed
	wire.Header.Del("Authorization")
	if token != "" {
		wire.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := a.transport.RoundTrip(wire)
	if resp != nil {
		resp.Request = req
	}
	warning := web.Unverified(x.origin(), "skip_cert_verification is set")
	if err == nil && a.unverified && !slices.Contains(x.warnings, warning) {
		x.warnings = append(x.warnings, warning)
	}
	return resp, err
}

var errLong = errors.New("the answer is longer than any answer of the HCP Terraform API; check the argument hostname")

// readJSON reads a document of at most limit bytes, decodes its JSON into *into, and returns the size of the
// document. If the document is larger, it returns the error tooLarge.
func readJSON(resp *http.Response, limit int64, tooLarge error, into any) (int64, error) {
	data, err := web.ReadBody(resp, limit, io.Discard)
	if meter.IsTooLarge(err) {
		return 0, web.Final("%w", tooLarge)
	}
	if err == nil && json.Unmarshal(data, into) != nil {
		err = web.Final("the answer does not come from the HCP Terraform API; check the argument hostname")
	}
	return int64(len(data)), err
}

// wait returns the time before the next attempt: as long as the service requires, within the limits.
func wait(shortest, longest time.Duration, try int, resp *http.Response) time.Duration {
	d := web.Backoff(shortest, longest, try, resp)
	if resp != nil && resp.StatusCode == http.StatusTooManyRequests {
		// The header contains the seconds until more requests are allowed. NaN is not greater than 0.
		if s, err := strconv.ParseFloat(resp.Header.Get("X-RateLimit-Reset"), 64); err == nil && s > 0 {
			d = max(d, time.Duration(min(s, longest.Seconds())*float64(time.Second)))
		}
	}
	return d
}

const maxHost = 300 // size limit of an address from outside in a message, in bytes

// refusal is an error whose value is the status of a response other than 200.
type refusal int

func (r refusal) Error() string { return web.Unexpected("the server", int(r)).Error() }

// statusOf returns the status of the [refusal] in err, or 0 if there is none.
func statusOf(err error) int {
	r, _ := errors.AsType[refusal](err)
	return int(r)
}

// fail returns the error for a failed API request. It calls denied for the statuses 403 and 404, and for 401
// if no token was sent, because their meaning depends on the request.
func (x *exchange) fail(err error, denied func(code int) error) error {
	switch code := statusOf(err); {
	case code == http.StatusUnauthorized && x.tokenSent:
		return fmt.Errorf("%s refused the token (%s); check whether it is wrong, expired or revoked", x.origin(), web.Status(code))
	case code == http.StatusForbidden, code == http.StatusNotFound, code == http.StatusUnauthorized:
		return denied(code)
	}
	return fmt.Errorf("%s: %w", x.origin(), err)
}

// origin returns the origin of the last request, for error messages.
func (x *exchange) origin() string { return outside.Line(source.Origin(x.asked), maxHost) }

package remote

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	nethttp "net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

const (
	maxRedirects = 5
	// maxDocument is enough for the longest list of resources in the document of
	// a state version, which nobody reads here.
	maxDocument = 8 << 20
	mediaType   = "application/vnd.api+json"
)

// exchange is the requests of one fetch, one after another.
type exchange struct {
	*location
	anonymous bool // no token is sent

	tries     int
	asked     *url.URL // by the last request
	tokenSent bool     // with the last request
	warnings  []string
}

// get sends one request, again where that may help, and hands the answer to
// read. A status other than 200 is a [refusal].
func (x *exchange) get(ctx context.Context, from *url.URL, accept string, read func(*nethttp.Response) error) error {
	x.tries, x.asked, x.tokenSent = 0, from, false
	req, err := retryablehttp.NewRequestWithContext(ctx, nethttp.MethodGet, from.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("Accept-Encoding", "identity")
	received := false
	req.SetResponseHandler(func(resp *nethttp.Response) error {
		defer resp.Body.Close() // not drained: a server may stop anywhere
		received = true
		if resp.StatusCode != nethttp.StatusOK {
			return refusal(resp.StatusCode)
		}
		return read(resp)
	})
	resp, err := x.client().Do(req)
	if resp != nil {
		defer resp.Body.Close()
	}
	if err == nil && !received { // a status that is worth another try, after the last one
		return refusal(resp.StatusCode)
	}
	return err
}

// getDocument reads a document of the API.
func (x *exchange) getDocument(ctx context.Context, from *url.URL, into any) error {
	return x.get(ctx, from, mediaType, func(resp *nethttp.Response) error { return readJSON(resp, maxDocument, errLong, into) })
}

// getOutputs reads a document with values in it, which may be large.
func (x *exchange) getOutputs(ctx context.Context, from *url.URL, into any) error {
	limit := min(x.limit, math.MaxInt64-maxDocument) + maxDocument
	return x.get(ctx, from, mediaType, func(resp *nethttp.Response) error {
		return readJSON(resp, limit, source.TooLarge(x.limit), into)
	})
}

func (x *exchange) client() *retryablehttp.Client {
	return &retryablehttp.Client{
		HTTPClient: &nethttp.Client{
			Transport:     x,
			CheckRedirect: checkRedirect,
			Timeout:       x.patience.timeout,
		},
		RetryMax:       x.patience.tries,
		RetryWaitMin:   x.patience.waitMin,
		RetryWaitMax:   x.patience.waitMax,
		RequestLogHook: func(retryablehttp.Logger, *nethttp.Request, int) { x.tries++ },
		CheckRetry:     worthAnotherTry,
		Backoff:        wait,
		ErrorHandler:   retryablehttp.PassthroughErrorHandler,
	}
}

// RoundTrip sends one request, which may be a redirect, with what its own URL
// may have. The token is added to a copy, so that nothing outside of the wire
// ever sees it.
func (x *exchange) RoundTrip(req *nethttp.Request) (*nethttp.Response, error) {
	a, err := x.accessTo(req.URL)
	if err != nil {
		return nil, final("%w", err)
	}
	var token string
	if !x.anonymous {
		if token, err = x.tokenFor(req.URL); err != nil {
			return nil, final("%w", err)
		}
	}
	x.asked, x.tokenSent = req.URL, token != ""
	wire := req.Clone(req.Context())
	wire.Header.Del("Referer") // it names the page that redirected here, which may be signed
	wire.Header.Del("Authorization")
	if token != "" {
		wire.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := a.transport.RoundTrip(wire)
	if resp != nil {
		resp.Request = req
	}
	if err == nil && a.unverified {
		x.warn("The certificate of " + x.origin() + " was not verified, because skip_cert_verification is set: " +
			"anybody on the way can read the token and replace the state.")
	}
	return resp, err
}

func (x *exchange) warn(text string) {
	if !slices.Contains(x.warnings, text) {
		x.warnings = append(x.warnings, text)
	}
}

func checkRedirect(to *nethttp.Request, via []*nethttp.Request) error {
	if len(via) > maxRedirects {
		return final("the server redirected more than %d times", maxRedirects)
	}
	if err := checkForeign(to.URL); err != nil {
		return final("the server redirected us: the answer is %w", err)
	}
	return nil
}

// readBody reads what was sent; more than limit bytes are the error tooLarge.
// Another encoding was not asked for, and would hide how much is to come.
func readBody(resp *nethttp.Response, limit int64, tooLarge error) ([]byte, error) {
	switch strings.ToLower(resp.Header.Get("Content-Encoding")) {
	case "", "identity":
	default:
		return nil, final("the server sent a content encoding that was not asked for")
	}
	if resp.ContentLength > limit {
		return nil, final("%w", tooLarge)
	}
	body := &wire{Reader: resp.Body}
	data, err := source.Read(body, resp.ContentLength, limit)
	switch {
	case resp.Request.Context().Err() != nil: // net/http may take what comes while it hangs up for an answer
		return nil, resp.Request.Context().Err()
	case body.err != nil: // rather than what followed from it
		return nil, body.err
	case body.read > limit:
		return nil, final("%w", tooLarge)
	case err != nil:
		return nil, final("%w", err)
	}
	return data, nil
}

// wire remembers how much came, and how the connection failed. Another try may
// help then, and not where there is too much.
type wire struct {
	io.Reader
	read int64
	err  error
}

func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	w.read += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		w.err = err
	}
	return n, err
}

var errLong = errors.New("the answer is longer than any of the API of HCP Terraform; check hostname")

func readJSON(resp *nethttp.Response, limit int64, tooLarge error, into any) error {
	data, err := readBody(resp, limit, tooLarge)
	if err != nil {
		return err
	}
	if json.Unmarshal(data, into) != nil {
		return final("the answer is not what the API of HCP Terraform has there; check hostname")
	}
	return nil
}

// worthAnotherTry decides after each try.
func worthAnotherTry(ctx context.Context, resp *nethttp.Response, err error) (bool, error) {
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil:
		return !isFinal(err), nil
	default:
		return isTransient(resp.StatusCode), nil
	}
}

func isTransient(code int) bool {
	return code == nethttp.StatusTooManyRequests || code >= 500 && code != nethttp.StatusNotImplemented
}

// wait is exponential, or what the service asks for; but a server must not hold
// a run for as long as it likes.
func wait(shortest, longest time.Duration, try int, resp *nethttp.Response) time.Duration {
	d := retryablehttp.DefaultBackoff(shortest, longest, try, resp)
	if resp != nil && resp.StatusCode == nethttp.StatusTooManyRequests {
		// Seconds until more requests are allowed. NaN is no number of them.
		if s, err := strconv.ParseFloat(resp.Header.Get("X-RateLimit-Reset"), 64); err == nil && s > 0 {
			d = max(d, time.Duration(min(s, longest.Seconds())*float64(time.Second)))
		}
	}
	return max(0, min(longest, d))
}

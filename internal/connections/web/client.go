// Package web asks over HTTP without an SDK, for sources, stores and key providers: how long
// they wait and how often they ask, how they read an answer, and what they say of one
// that does not come.
package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
)

// Patience says how long a source waits and how often it asks again.
type Patience struct {
	Timeout          time.Duration // of one try
	Tries            int           // beyond the first
	WaitMin, WaitMax time.Duration
	Attr             string // that sets Timeout; "" if none does
}

// Wire is how a service is asked. Requests that read may be sent several times.
type Wire struct {
	Patience
	Transport http.RoundTripper
	Backoff   retryablehttp.Backoff // nil for [Backoff]

	// Authorize completes a request with what shows who asks, and with its body
	// if that is part of it. It is called for each try and for each redirect,
	// because signatures hold the time, and credentials are for one origin.
	// Errors in our own words are those of [Final]. It may be nil.
	Authorize func(*http.Request) error

	// Redirects has redirects followed. Transport then says for each request what
	// its own URL may receive. Otherwise a redirect is an answer like any other.
	Redirects bool

	// Trust says how to trust an authority that the system does not know, such
	// as "set ca_file in a consul block of credentials". It is "" if there is no
	// way.
	Trust string

	// Unreached says what may be wrong if nobody answers at the address; "" for
	// nothing in particular.
	Unreached string
}

// Get asks for what is at from, again if that may help, and has read look at
// the answer. One with a status that is worth another try gets there only after
// the last try. An error of read is the end if it is [Final] or an
// [Answer]; after others, such as that of a body that breaks off,
// Get asks again. The errors are in our own words, and wrap those of [Final] and
// [Again].
func (w Wire) Get(ctx context.Context, from *url.URL, header http.Header, read func(*http.Response) error) error {
	return w.send(ctx, http.MethodGet, from.String(), header, read)
}

// maxAnswer is in bytes. Keys and tokens have a few kilobytes.
const maxAnswer = 64 << 10

// Ask sends a request to a service that gives keys or tokens, again as [Wire.Get]
// does, and returns the answer whatever its status is. The body of the request,
// if there is one, comes from Authorize.
func (w Wire) Ask(ctx context.Context, method, url string, header http.Header) (status int, body []byte, err error) {
	err = w.send(ctx, method, url, header, func(resp *http.Response) (err error) {
		status = resp.StatusCode
		body, err = ReadBody(resp, maxAnswer, io.Discard)
		if meter.IsTooLarge(err) {
			return Final("the answer is longer than %d bytes", maxAnswer)
		}
		return err
	})
	return status, body, err
}

func (w Wire) send(ctx context.Context, method, url string, header http.Header, read func(*http.Response) error) error {
	req, err := retryablehttp.NewRequestWithContext(ctx, method, url, nil)
	if err != nil { // it has the URL in it
		return errors.New("the address is not one that can be asked")
	}
	maps.Copy(req.Header, header)
	done := false
	req.SetResponseHandler(func(resp *http.Response) error {
		defer resp.Body.Close() // not drained: a server may stop anywhere
		err := read(resp)
		done = err == nil
		return err
	})
	tries := 0
	resp, err := w.retrying(&tries).Do(req)
	if resp != nil {
		defer resp.Body.Close()
	}
	if err == nil && !done { // a status that is worth another try, after the last one
		err = read(resp)
	}
	if err != nil {
		return w.explain(ctx, err, tries)
	}
	return nil
}

// authorizing sends one request, once.
type authorizing Wire

func (a authorizing) RoundTrip(req *http.Request) (*http.Response, error) {
	if a.Authorize != nil {
		req = req.Clone(req.Context())
		if err := a.Authorize(req); err != nil {
			return nil, err
		}
	}
	return a.Transport.RoundTrip(req)
}

func (w Wire) retrying(tries *int) *retryablehttp.Client {
	if w.Backoff == nil {
		w.Backoff = Backoff
	}
	return &retryablehttp.Client{
		HTTPClient:     &http.Client{Transport: authorizing(w), CheckRedirect: w.checkRedirect, Timeout: w.Timeout},
		RetryMax:       w.Tries,
		RetryWaitMin:   w.WaitMin,
		RetryWaitMax:   w.WaitMax,
		RequestLogHook: func(retryablehttp.Logger, *http.Request, int) { *tries++ },
		CheckRetry:     worthAnotherTry,
		Backoff:        w.Backoff,
		ErrorHandler:   retryablehttp.PassthroughErrorHandler,
	}
}

// MaxRedirects is how many redirects a request follows.
const MaxRedirects = 10

func (w Wire) checkRedirect(to *http.Request, via []*http.Request) error {
	if !w.Redirects {
		return http.ErrUseLastResponse
	}
	if len(via) > MaxRedirects {
		return Final("the server redirected more than %d times; set the address to where it leads", MaxRedirects)
	}
	if err := MayLead(via[len(via)-1].URL, to.URL); err != nil {
		return Final("the server redirected us: the answer is %w", err)
	}
	return nil
}

// worthAnotherTry decides after each try.
func worthAnotherTry(ctx context.Context, resp *http.Response, err error) (bool, error) {
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
	return code == http.StatusRequestTimeout || code == http.StatusTooManyRequests || code >= 500 && code != http.StatusNotImplemented
}

// Backoff is exponential, or what the server asks for; but a server must not
// hold a run for as long as it likes.
func Backoff(shortest, longest time.Duration, try int, resp *http.Response) time.Duration {
	return max(0, min(longest, retryablehttp.DefaultBackoff(shortest, longest, try, resp)))
}

// explain makes an error for people: what happened, and how often.
func (w Wire) explain(ctx context.Context, err error, tries int) error {
	if answer, ok := errors.AsType[Answer](err); ok {
		return answer
	}
	if ctx.Err() != nil {
		return fmt.Errorf("the read was cancelled: %w", context.Cause(ctx))
	}
	_, own := errors.AsType[ownError](err)
	broken := !own && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF))
	err = w.reason(err)
	if tries > 1 {
		err = fmt.Errorf("%w (after %d tries)", err, tries)
	}
	if broken {
		err = fmt.Errorf("%w; try again", err)
	}
	return err
}

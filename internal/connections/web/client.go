// Package web sends HTTP requests without an SDK, for sources, stores and key providers. It limits
// waits and the number of attempts, reads answers, and explains missing ones.
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

// Patience holds the limits of a request and its repetitions.
type Patience struct {
	Timeout          time.Duration // limit of one attempt
	Tries            int           // attempts after the first
	WaitMin, WaitMax time.Duration
	Attr             string // attribute that sets Timeout; "" if there is none
}

// Wire sends requests to a service, and repeats them if that may help.
type Wire struct {
	Patience
	Transport http.RoundTripper
	Backoff   retryablehttp.Backoff // nil for [Backoff]

	// Authorize adds credentials to a request, and its body if they depend on it. It is called for each
	// attempt and for each redirect, because signatures contain the time, and credentials belong to one
	// origin. Its errors are shown if [Final] made them. It may be nil.
	Authorize func(*http.Request) error

	// Redirects tells to follow redirects. Transport must then decide for each request which
	// credentials its own URL receives. If it is false, a redirect is an answer like any other.
	Redirects bool

	// Trust is advice for trusting an authority that the system does not know, such as "set ca_file in
	// a consul block of credentials"; "" for none.
	Trust string

	// Unreached is advice for the case that no server answers at the address; it may be "".
	Unreached string
}

// Get sends a GET to from, repeats it if that may help, and passes the answer to read. It passes an
// answer whose status justifies another attempt only after the last attempt. An error of read is final
// if [Final] made it or if it is an [Answer]; after other errors, such as a body that breaks off, Get
// tries again. Its errors do not repeat answers, and wrap the errors of [Final] and [Again].
func (w Wire) Get(ctx context.Context, from *url.URL, header http.Header, read func(*http.Response) error) error {
	return w.Send(ctx, http.MethodGet, from.String(), header, read)
}

// maxAnswer is the largest answer with keys or tokens, in bytes. They have a few kilobytes.
const maxAnswer = 64 << 10

// Ask sends a request to a service for keys or tokens, repeats it like [Wire.Get], and returns the
// answer of any status. Authorize sets the body of the request, if it has one.
func (w Wire) Ask(ctx context.Context, method, url string, header http.Header) (status int, body []byte, err error) {
	err = w.Send(ctx, method, url, header, func(resp *http.Response) (err error) {
		status = resp.StatusCode
		body, err = ReadBody(resp, maxAnswer, io.Discard)
		if meter.IsTooLarge(err) {
			return Final("the answer is longer than %d bytes", maxAnswer)
		}
		return err
	})
	return status, body, err
}

// Send sends a request of any method, and does what [Wire.Get] does. Authorize sets the body of the request, if it has
// one.
func (w Wire) Send(ctx context.Context, method, url string, header http.Header, read func(*http.Response) error) error {
	req, err := retryablehttp.NewRequestWithContext(ctx, method, url, nil)
	if err != nil { // the text of err contains the URL
		return errors.New("no request can be sent to this address")
	}
	maps.Copy(req.Header, header)
	done := false
	req.SetResponseHandler(func(resp *http.Response) error {
		defer resp.Body.Close() // the body is not drained, because a server may stall anywhere
		err := read(resp)
		done = err == nil
		return err
	})
	tries := 0
	resp, err := w.retrying(&tries).Do(req)
	if resp != nil {
		defer resp.Body.Close()
	}
	if err == nil && !done { // the last answer, with a status that justified another attempt
		err = read(resp)
	}
	if err != nil {
		return w.explain(ctx, err, tries)
	}
	return nil
}

// authorizing is a transport that calls Authorize for each request.
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

// MaxRedirects is the largest number of redirects that a request follows.
const MaxRedirects = 10

func (w Wire) checkRedirect(to *http.Request, via []*http.Request) error {
	if !w.Redirects {
		return http.ErrUseLastResponse
	}
	if len(via) > MaxRedirects {
		return Final("the server redirected more than %d times; set the final address", MaxRedirects)
	}
	if err := MayLead(via[len(via)-1].URL, to.URL); err != nil {
		return Final("the server redirected us: the answer is %w", err)
	}
	return nil
}

// worthAnotherTry reports after each attempt whether another one may help.
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

// Backoff returns the wait before the next attempt: exponential, or as long as the server requires, but
// at most longest.
func Backoff(shortest, longest time.Duration, try int, resp *http.Response) time.Duration {
	return max(0, min(longest, retryablehttp.DefaultBackoff(shortest, longest, try, resp)))
}

// explain returns an error with the reason and the number of attempts.
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

// Package web sends HTTP requests without an SDK, for sources, stores and key providers. It limits delays and
// attempts, reads responses, and explains failed requests.
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

// Patience limits a request and its retries.
type Patience struct {
	Timeout          time.Duration // the time limit for one attempt
	Tries            int           // the maximum number of retries
	WaitMin, WaitMax time.Duration
	Attr             string // the attribute that sets Timeout; may be empty
}

// Wire sends requests to a service, and retries them if that may help.
type Wire struct {
	Patience
	Transport http.RoundTripper
	Backoff   retryablehttp.Backoff // nil for the function [Backoff]

	// Authorize adds credentials to a request, and its body if the credentials depend on the body. It is
	// called for every attempt and every redirect, because signatures contain the time, and credentials
	// belong to a single origin. The text of its errors is shown only if [Final] or [Again] created them.
	// Authorize may be nil.
	Authorize func(*http.Request) error

	// Redirects is true if redirects are followed. Transport must then decide for each request which
	// credentials the URL may receive. Otherwise, a redirect is returned like any other response.
	Redirects bool

	// Trust is advice for trusting a certificate authority that the system does not know, such as "set
	// ca_file in a consul block of credentials". It may be empty.
	Trust string

	// Unreached is advice for when no server responds at the address. It may be empty.
	Unreached string
}

// Get sends a GET request, retries it if that may help, and passes the response to read. A response with a
// status that justifies a retry is passed to read only after the last attempt. An error from read is final if
// [Final] created it or if it is an [Answer]; after any other error, such as an incomplete body, Get retries.
// The returned error does not repeat the response. It wraps errors from [Final] and [Again].
func (w Wire) Get(ctx context.Context, from *url.URL, header http.Header, read func(*http.Response) error) error {
	return w.Send(ctx, http.MethodGet, from.String(), header, read)
}

// maxAnswer is the maximum size of a response with keys or tokens, in bytes. Real ones have a few kilobytes.
const maxAnswer = 64 << 10

// Ask sends a request for keys or tokens, with the retries of [Wire.Get]. It returns responses with any
// status. If the request has a body, Authorize must set it.
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
		defer resp.Body.Close() // without draining the body, because a server may stall at any time
		err := read(resp)
		done = err == nil
		return err
	})
	tries := 0
	resp, err := w.retrying(&tries).Do(req)
	if resp != nil {
		defer resp.Body.Close()
	}
	if err == nil && !done { // the last response, if its status justifies a retry
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

// MaxRedirects is the maximum number of redirects to follow.
const MaxRedirects = 10

func (w Wire) checkRedirect(to *http.Request, via []*http.Request) error {
	if !w.Redirects {
		return http.ErrUseLastResponse
	}
	if len(via) > MaxRedirects {
		return Final("the server redirected more than %d times; set the final address", MaxRedirects)
	}
	if err := MayLead(via[len(via)-1].URL, to.URL); err != nil {
		return Final("the server redirected the request to another address, but %w", err)
	}
	return nil
}

// worthAnotherTry reports whether to retry after an attempt.
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

// Backoff returns the delay before the next attempt: exponential, or as long as the server requests, but at
// most longest.
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

// MayLead returns an error if the server at from must not send a client to the URL to, either by a redirect
// or by naming another server. Package source decides which credentials the URL may receive. The error is a
// clause about the address.
func MayLead(from, to *url.URL) error {
	switch {
	case to.Scheme == "http" && from.Scheme == "https":
		return errors.New("the address is http instead of https, so others could read and replace the state")
	case to.Scheme != "https" && to.Scheme != "http", to.Hostname() == "", to.Opaque != "":
		return errors.New("the address is not a complete http or https URL")
	case to.User != nil:
		return errors.New("the address contains a user name or password")
	}
	return nil
}

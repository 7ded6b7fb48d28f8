// Package web has what sources share that ask over HTTP without an SDK: how long
// they wait and how often they ask, how they read an answer, and what they say
// of one that does not come.
package web

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// Patience says how long a source waits and how often it asks again.
type Patience struct {
	Timeout          time.Duration // of one try
	Tries            int           // beyond the first
	WaitMin, WaitMax time.Duration
	Attr             string // that sets Timeout; "" where none does
}

// Client is how a source asks.
type Client struct {
	Patience
	Transport     http.RoundTripper
	CheckRedirect func(to *http.Request, via []*http.Request) error
	Backoff       retryablehttp.Backoff // nil for [Backoff]

	// Trust says how to trust an authority that the system does not know, such
	// as "set ca_file in a consul block of credentials". It is "" where there is
	// no way.
	Trust string
}

// Get asks for what is at from, again where that may help, and has read look at
// the answer. One with a status that is worth another try gets there only after
// the last try. An error of read is the end where it is [Final] or a
// [source.MissingError]; after others, such as that of a body that breaks off,
// Get asks again. The errors are in our own words, and wrap those of [Final] and
// [Again].
func (c Client) Get(ctx context.Context, from *url.URL, header http.Header, read func(*http.Response) error) error {
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, from.String(), nil)
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
	resp, err := c.retrying(&tries).Do(req)
	if resp != nil {
		defer resp.Body.Close()
	}
	if err == nil && !done { // a status that is worth another try, after the last one
		err = read(resp)
	}
	if err != nil {
		return c.explain(ctx, err, tries)
	}
	return nil
}

func (c Client) retrying(tries *int) *retryablehttp.Client {
	backoff := c.Backoff
	if backoff == nil {
		backoff = Backoff
	}
	return &retryablehttp.Client{
		HTTPClient:     &http.Client{Transport: c.Transport, CheckRedirect: c.CheckRedirect, Timeout: c.Timeout},
		RetryMax:       c.Tries,
		RetryWaitMin:   c.WaitMin,
		RetryWaitMax:   c.WaitMax,
		RequestLogHook: func(retryablehttp.Logger, *http.Request, int) { *tries++ },
		CheckRetry:     worthAnotherTry,
		Backoff:        backoff,
		ErrorHandler:   retryablehttp.PassthroughErrorHandler,
	}
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
func (c Client) explain(ctx context.Context, err error, tries int) error {
	if missing, ok := source.IsMissing(err); ok {
		return missing
	}
	if ctx.Err() != nil {
		return fmt.Errorf("the read was cancelled: %w", context.Cause(ctx))
	}
	err = c.reason(err)
	if tries > 1 {
		err = fmt.Errorf("%w (after %d tries)", err, tries)
	}
	return err
}

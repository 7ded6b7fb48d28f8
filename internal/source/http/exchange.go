package http

import (
	nethttp "net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

const maxRedirects = 10

// exchange is one fetch: its tries, their redirects, and the answer.
type exchange struct {
	*location
	tries    int
	asked    *url.URL // of the last request
	access   *access  // of the last request; nil before the first
	warnings []string
	snapshot *source.Snapshot
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
// may have.
func (x *exchange) RoundTrip(req *nethttp.Request) (*nethttp.Response, error) {
	a, err := x.accessTo(req.URL)
	if err != nil {
		return nil, final("%w", err)
	}
	x.asked, x.access = req.URL, a
	resp, err := a.send(req)
	if err == nil && a.unverified && req.URL.Scheme == "https" {
		x.warn("The certificate of " + source.Origin(req.URL) + " was not verified, because skip_cert_verification is set: " +
			"anybody on the way can read the credentials and replace the state.")
	}
	return resp, err
}

func (x *exchange) warn(text string) {
	if !slices.Contains(x.warnings, text) {
		x.warnings = append(x.warnings, text)
	}
}

func checkRedirect(to *nethttp.Request, via []*nethttp.Request) error {
	switch {
	case len(via) >= maxRedirects:
		return final("the server redirected more than %d times", maxRedirects)
	case to.URL.User != nil:
		return final("the server redirected to a URL with a user name or password in it")
	case to.URL.Scheme != "https" && to.URL.Scheme != "http":
		return final("the server redirected to something that is neither http nor https")
	case to.URL.Scheme == "http" && via[len(via)-1].URL.Scheme == "https":
		return final("the server redirected from https to http, where anybody on the way could read and replace the state")
	}
	return nil
}

// receive looks at an answer that is no reason to try again. A body that
// breaks off is one.
func (x *exchange) receive(resp *nethttp.Response) error {
	defer resp.Body.Close() // not drained: a server may stop anywhere
	switch resp.StatusCode {
	case nethttp.StatusOK:
	case nethttp.StatusNoContent, nethttp.StatusNotFound:
		return &source.MissingError{
			Detail:          "the server answered " + status(resp.StatusCode) + x.redirected(),
			CredentialsSent: x.access.sends(),
		}
	default:
		return x.refusal(resp.StatusCode)
	}
	data, err := readBody(resp, x.limit)
	if err == nil {
		err = resp.Request.Context().Err() // net/http may take what comes while it hangs up for an answer
	}
	if err != nil {
		return err
	}
	x.snapshot = &source.Snapshot{Data: data, Revision: revision(resp.Header.Get("ETag")), Warnings: x.warnings}
	return nil
}

// refusal says what an unwelcome status means.
func (x *exchange) refusal(code int) error {
	origin := source.Origin(x.asked)
	switch {
	case code != nethttp.StatusUnauthorized && code != nethttp.StatusForbidden:
		return final("the server answered %s", status(code))
	case x.access.sends():
		return final("the server refused the credentials (%s)", status(code))
	default:
		return final("the server answered %s, and no credentials were sent to %s; add http { url = %q … } "+
			"to credentials in the provider block", status(code), origin, origin+"/")
	}
}

func (x *exchange) redirected() string {
	if to := public(x.asked); to != x.String() {
		return " (redirected to " + to + ")"
	}
	return ""
}

// revision is the ETag without its decoration: an opaque word to compare.
func revision(etag string) string {
	etag = strings.Trim(strings.TrimPrefix(etag, "W/"), `"`)
	if !utf8.ValidString(etag) {
		return strings.ToValidUTF8(etag, "\uFFFD")
	}
	return etag
}

package httpsource

import (
	"bytes"
	"crypto/fips140"
	"crypto/md5" //nolint:gosec // Content-MD5 finds accidents, not attacks
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// exchange is one fetch, with all its attempts and redirects, and its result.
type exchange struct {
	*location
	asked    *url.URL // URL of the last request
	access   *Access  // credentials of the last request; nil before the first
	warnings []source.Warning
	snapshot *source.Snapshot
}

func (x *exchange) client() web.Wire {
	return web.Wire{
		Patience: x.patience, Transport: x, Redirects: true,
		Trust: "set client_ca_certificate_pem in {credentials}",
	}
}

// RoundTrip sends one request, which may follow a redirect, with the credentials for its own URL.
func (x *exchange) RoundTrip(req *http.Request) (*http.Response, error) {
	g, err := x.credentials.Redirected(req.URL)
	if err != nil {
		return nil, web.Final("%w", err)
	}
	a, err := x.run.access(req.Context(), g)
	if err != nil {
		return nil, web.Final("%w", err)
	}
	x.asked, x.access = req.URL, a
	resp, err := a.RoundTrip(req)
	if err == nil {
		x.warn(req)
	}
	return resp, err
}

// warn adds the warnings about a request's connection, each only once.
func (x *exchange) warn(req *http.Request) {
	var warning source.Warning
	switch {
	case x.access.unverified && req.URL.Scheme == "https":
		warning = web.Unverified(source.Origin(req.URL), "skip_cert_verification is set")
	case x.access.Exposes(req):
		warning = web.Unencrypted("the address begins with http")
	default:
		return
	}
	if !slices.Contains(x.warnings, warning) {
		x.warnings = append(x.warnings, warning)
	}
}

// receive stores the state in x.snapshot if the response is successful. Otherwise it returns an error.
func (x *exchange) receive(resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNoContent, http.StatusNotFound:
		return x.missing(web.Status(resp.StatusCode))
	default:
		return x.refusal(resp)
	}
	data, err := readBody(resp, x.limit)
	if err != nil {
		return err
	}
	if len(data) == 0 { // in the backend, too, an empty body means that there is no state
		return x.missing(web.Status(resp.StatusCode) + " with an empty body")
	}
	if isPage(resp.Header.Get("Content-Type"), data) {
		if part := pageOfFile.FindStringSubmatch(x.asked.Path); part != nil {
			return web.Final("the server answered with a web page (text/html), not with a file, because %s in the address leads to a "+
				"page for browsers; use the address of the raw file, or the source git", part[0])
		}
		return web.Final("the server answered with a web page (text/html), probably a sign-in page, not with a file; check the address and the " +
			"credentials")
	}
	x.snapshot = &source.Snapshot{Data: data, Revision: source.Revision(resp.Header.Get("ETag")), Warnings: x.warnings}
	return nil
}

// missing returns the error for a response that says that there is no state.
func (x *exchange) missing(answered string) error {
	detail := "the server answered " + answered + x.redirected()
	if sibling := x.credentials.OfSibling(x.asked); sibling != "" && !x.access.sends() {
		detail += ". " + sibling + ofSibling
	}
	return &source.MissingError{Detail: detail, CredentialsSent: x.access.sends()}
}

var pageOfFile = lazyregexp.New(`/(-/)?(blob|tree|src/branch)/`)

// isPage reports whether a response is a web page. Both its media type and its first bytes must say so,
// because some servers use text/html for all files.
func isPage(contentType string, data []byte) bool {
	media, _, _ := mime.ParseMediaType(contentType)
	return (media == "text/html" || media == "application/xhtml+xml") && recognize.IsWebPage(data)
}

// refusal returns the error for a status that is not a success.
func (x *exchange) refusal(resp *http.Response) error {
	code, origin := resp.StatusCode, source.Origin(x.asked)
	challenge, arguments := recognize.Challenge(resp.Header.Values("WWW-Authenticate")), []string{"bearer_token = var.state_token"}
	if challenge == "basic" {
		arguments = []string{"username = var.state_username", "password = var.state_password"}
	}
	missed, elsewhere := x.credentials.Uncovered(x.asked), !strings.EqualFold(x.asked.Hostname(), x.address.Hostname())
	sibling := x.credentials.OfSibling(x.asked)
	switch {
	case code == http.StatusUnauthorized && challenge == recognize.Unsupported:
		return web.Final("the server at %s answered %s, because it requires %s; configure it to accept Basic or a "+
			"token", origin, web.Status(code), challenge)
	case code == http.StatusBadRequest && x.asked.Scheme == "http":
		return web.Final("the server answered %s; check the address, and use https:// if it speaks TLS at this port", web.Status(code))
	case code != http.StatusUnauthorized && code != http.StatusForbidden:
		return web.Unexpected("the server", code)
	case x.access.sends():
		return web.Final("%w", x.access.refused(web.Status(code)))
	}
	switch {
	case missed != "":
		missed = ": " + missed
	case elsewhere:
		missed = "; if that server may receive credentials, add an http credentials block for its address"
	case sibling != "":
		missed = ". " + sibling + ofSibling
		arguments = nil
	default:
		missed = "; add credentials to {settings}"
	}
	refused := fmt.Errorf("the server answered %s, and no credentials were sent to %s%s%s", web.Status(code), origin, x.redirected(), missed)
	if !elsewhere { // otherwise a server could redirect in order to choose the URL that the advice sends credentials to
		refused = fault.Known(refused, source.NoCredentials("http", x.asked, arguments...))
	}
	return web.Final("%w", refused)
}

const ofSibling = " is meant for another state on this server; to use that variable here too, add a block that covers this address (the " +
	"block may be without credentials)"

func (x *exchange) redirected() string {
	if to := source.Public(x.asked); to != x.String() {
		return " (redirected to " + outside.Line(to, maxPlace) + ")"
	}
	return ""
}

const maxPlace = 300 // size limit of a server's URL in a message, in bytes

// readBody returns the body of a successful response. If there is a Content-MD5 header, it verifies the body.
func readBody(resp *http.Response, limit int64) ([]byte, error) {
	header := resp.Header.Get("Content-MD5")
	if header == "" || fips140.Enabled() { // in FIPS mode, MD5 may be forbidden
		return web.ReadBody(resp, limit, io.Discard)
	}
	sent := md5.New() //nolint:gosec // see above
	data, err := web.ReadBody(resp, limit, sent)
	if err != nil {
		return nil, err
	}
	return data, checkMD5(header, sent.Sum(nil), data)
}

// checkMD5 returns an error if a Content-MD5 header matches neither the data as sent nor the unpacked data.
// Servers disagree about which of these the header covers.
func checkMD5(header string, sent, unpacked []byte) error {
	want, err := base64.StdEncoding.DecodeString(header)
	if err != nil {
		return web.Final("the server's Content-MD5 header is not base64; correct the server or proxy that sets the header")
	}
	sum := md5.Sum(unpacked) //nolint:gosec // see above
	if !bytes.Equal(want, sent) && !bytes.Equal(want, sum[:]) {
		return web.Again("the answer was damaged in transit: it does not match its Content-MD5 header")
	}
	return nil
}

// Package netfail explains why a connection failed. It replaces the error messages of clients, which may
// quote responses from a server or proxy, or a URL with its query.
package netfail

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/answers"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/trust"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
)

const maxReason = 300 // the maximum size of an error text in a message, in bytes

// Reason returns the reason why there was no response. The parameter trust is advice for trusting a
// certificate authority that the system does not know, such as "set ca_file in a consul block of
// credentials". It may be empty.
func Reason(err error, trust string) string {
	if known := KnownReason(err, trust); known != "" {
		return known
	}
	return Invalid
}

// KnownReason works like [Reason], but returns an empty string for errors that are not network errors.
func KnownReason(err error, advice string) string {
	var (
		network, isOp  = errors.AsType[*net.OpError](err)
		lookup, isDNS  = errors.AsType[*net.DNSError](err)
		errno, isErrno = errors.AsType[syscall.Errno](err)
	)
	switch refused := find[*trust.Error](err); { // this program itself refused the connection
	case refused != nil:
		return refused.Error()
	case errors.Is(err, context.Canceled):
		return Cancelled
	case IsTLS(err):
		return reasonOfTLS(err, advice)
	case errors.Is(err, ErrHungUp):
		return ErrHungUp.Error()
	case isDNS && isOfProxy(err, lookup.Name):
		return strings.TrimSpace("the proxy host "+shown(lookup.Name)) + NotFound + ": " + shown(lookup.Err) + checkProxy
	case isDNS:
		return strings.TrimSpace("the host "+shown(lookup.Name)) + NotFound + ": " + shown(lookup.Err) + checkName
	case IsTimeout(err):
		return NotInTime
	case isOp && network.Op == "proxyconnect":
		return proxyNotReached + ": " + shown(network.Error()) + checkProxy
	case isOp && errors.Is(err, syscall.ECONNRESET):
		return Ended + ": " + shown(network.Error()) + checkPort
	case isOp:
		return NotReached + ": " + shown(network.Error()) + checkAddress
	case isErrno:
		return failed + ": " + errno.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return BrokeOff
	}
	return reasonInText(err.Error(), advice)
}

// isOfProxy reports whether the host that was looked up is a proxy, that is, whether it differs from the
// request's host.
func isOfProxy(err error, host string) bool {
	request, ok := errors.AsType[*url.Error](err)
	if !ok {
		return false
	}
	u, err := url.Parse(request.URL)
	name := func(s string) string { return strings.ToLower(strings.TrimSuffix(s, ".")) }
	return err == nil && u.Hostname() != "" && host != "" && name(u.Hostname()) != name(host)
}

// IsTimeout reports whether a response did not arrive in time. It returns false if the connection timed out,
// because the server then cannot be reached at all.
func IsTimeout(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return false
	}
	slow, ok := errors.AsType[net.Error](err)
	return errors.Is(err, context.DeadlineExceeded) || ok && slow.Timeout()
}

// IsTLS reports whether err is a TLS error, so that another attempt would fail in the same way.
func IsTLS(err error) bool {
	return find[*trust.Error](err) != nil || certificateError(err) != nil || isPlain(err) || isAlert(err)
}

// ErrHungUp means that the server closed the connection instead of answering the first TLS message.
var ErrHungUp = errors.New(Ended + " during the TLS handshake; check the port and the scheme")

func reasonOfTLS(err error, trust string) string {
	_, isUnknown := errors.AsType[x509.UnknownAuthorityError](err)
	certificate := certificateError(err)
	switch {
	case isUnknown && trust != "":
		return UnknownAuthority + trust
	case certificate != nil:
		return NotTrusted + ": " + shown(certificate.Error())
	case isPlain(err):
		return NotTLS
	}
	op, _ := errors.AsType[*net.OpError](err)
	return NoHandshake + ": " + shown(op.Error())
}

// Results of [Reason], or the beginnings of results.
const (
	NoAnswer         = "there was no complete answer"
	NotInTime        = NoAnswer + " in time"
	NotReached       = "the server cannot be reached"
	Ended            = "the server closed the connection"
	BrokeOff         = "the connection was lost before the answer was complete"
	Invalid          = "the connection failed, or the answer is not valid; check the address and the proxy settings"
	Cancelled        = "the request was cancelled"
	NotFound         = " cannot be found" // follows the host
	NotTLS           = "the server does not speak TLS; check the port and the scheme"
	NoHandshake      = "the TLS handshake failed"
	NotTrusted       = "the server's certificate is not trusted"
	UnknownAuthority = "the server's certificate is signed by an unknown authority; if that is expected, " // advice follows

	failed          = "the connection failed"
	speaksTLS       = "the server expects TLS on this port; use https://"
	proxyNotReached = "the proxy cannot be reached"
	proxyRefuses    = "the proxy refuses the connection"

	// These texts are advice at the end of a reason.
	checkAddress = "; check the address, the proxy settings, and that the server is running"
	checkPort    = "; check the address, the port, the TLS settings and the proxy settings"
	checkName    = "; check the host name and the proxy settings"
	checkProxy   = "; check the argument proxy, or HTTPS_PROXY and HTTP_PROXY"
)

// reasonInText returns a reason if text contains a message that is known to be harmless. It is for clients
// whose errors are only text.
func reasonInText(text, trust string) string {
	return answers.Find([]answers.Row{
		{Said: "certificate signed by unknown authority", Unless: trust == "", Text: UnknownAuthority + trust},
		{Said: "certificate signed by unknown authority", Text: NotTrusted + ": certificate signed by unknown authority"},
		{Said: "certificate has expired", Text: NotTrusted + ": certificate has expired"},
		{Said: "certificate is valid for", Text: NotTrusted + ": certificate is valid for another host"},
		{Said: "first record does not look like a TLS handshake", Text: NotTLS},
		// These bytes are a TLS alert: the server could not understand the request.
		{Said: `malformed HTTP response "\x15\x03`, Text: speaksTLS},
		{Said: "no such host", Text: "the host" + NotFound + checkName},
		{Said: "connection refused", Text: NotReached + ": connection refused" + checkAddress},
		{Said: "connection reset", Text: NotReached + ": connection reset" + checkAddress},
		{Said: "network is unreachable", Text: NotReached + ": network is unreachable" + checkAddress},
		{Said: "i/o timeout", Text: NotReached + ": i/o timeout" + checkAddress},
		{Said: "failed to do connect handshake", Text: proxyRefuses},
		{Said: "context deadline exceeded", Text: NotInTime},
	}, 0, "", text).Text
}

func shown(s string) string { return outside.Line(s, maxReason) }

// certificateError returns the error in err about an untrusted certificate, or nil if there is none. Some
// clients verify certificates themselves, so their errors are not wrapped in the error type of crypto/tls.
func certificateError(err error) error {
	if wrapped, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return wrapped.Err
	}
	return cmp.Or(find[x509.UnknownAuthorityError](err), find[x509.CertificateInvalidError](err), find[x509.HostnameError](err),
		find[x509.SystemRootsError](err))
}

// find returns the error of type E in err, or nil if there is none.
func find[E error](err error) error {
	if found, ok := errors.AsType[E](err); ok {
		return found
	}
	return nil
}

// isPlain reports whether the server does not use TLS.
func isPlain(err error) bool {
	_, ok := errors.AsType[tls.RecordHeaderError](err)
	return ok || errors.Is(err, http.ErrSchemeMismatch)
}

// isAlert reports whether either side closed the connection with a TLS alert, such as "bad certificate".
func isAlert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "remote error" || op.Op == "local error")
}

// Titles of warnings about connections that work.
const (
	NotVerified  = "Unverified connection"
	NotEncrypted = "Unencrypted connection"
)

// Warning is a warning about a successful read, such as an insecure connection.
type Warning struct {
	Title string // a few words
	Text  string // one or more complete sentences
}

// Unverified returns the warning that a server's certificate was not verified. The parameter whose names the
// server, and harm says what an attacker on the network can do.
func Unverified(whose, because, harm string) Warning {
	return Warning{NotVerified, "The certificate of " + whose + " was not verified, because " + because +
		". Anyone on the network path can " + harm + "."}
}

// Unencrypted returns the warning about a connection without TLS. The parameter what names the data that was
// sent over it.
func Unencrypted(what, because, harm string) Warning {
	return Warning{NotEncrypted, what + " sent without encryption, because " + because + ". Anyone on the network path can " + harm + "."}
}

// Exposed records which services were called without encryption. It is for callers that cannot know this in
// advance, because environment variables and profiles may choose endpoints. A nil Exposed records nothing.
type Exposed struct {
	mu       sync.Mutex
	services []string
}

// Note records the service of a request if others can read the request. It ignores requests without a service
// name, because they go to a local service, such as a container's.
func (e *Exposed) Note(service string, u *url.URL) {
	if e == nil || service == "" || !IsExposed(u, nil) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.Contains(e.services, service) {
		e.services = append(e.services, service)
		slices.Sort(e.services)
	}
}

// Services returns the names of all services that were called without encryption.
func (e *Exposed) Services() []string {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.services)
}

// Warning returns the warning about the recorded services, or a zero Warning if there are none.
func (e *Exposed) Warning() Warning {
	services := e.Services()
	if len(services) == 0 {
		return Warning{}
	}
	return Unencrypted("The credentials were", "the "+strings.Join(services, " endpoint and the ")+" endpoint begins with http", "read them")
}

// IsLoopback reports whether connections to host stay on this machine. The name localhost always refers to
// this machine (RFC 6761), but only in lowercase, because Go's clients would use a proxy for any other
// spelling.
func IsLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// IsExposed reports whether others can read requests to u and replace the responses: the connection is not
// encrypted and leaves this machine. The parameter proxy is a proxy that is used even for this machine. It is
// nil if there is none, or if an environment variable sets it.
func IsExposed(u, proxy *url.URL) bool {
	return u.Scheme == "http" && (!IsLoopback(u.Hostname()) || proxy != nil && !IsLoopback(proxy.Hostname()))
}

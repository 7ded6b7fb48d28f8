// Package netfail explains why a connection failed. It replaces the texts of clients, some of
// which quote answers of a server or a proxy, and others the URL with its query.
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

const maxReason = 300 // bytes of an error that are shown

// Reason returns the reason why there was no answer. The text trust is advice for trusting an authority
// that the system does not know, such as "set ca_file in a consul block of credentials"; "" for none.
func Reason(err error, trust string) string {
	if known := KnownReason(err, trust); known != "" {
		return known
	}
	return Invalid
}

// KnownReason works like [Reason], but returns "" for errors that do not concern the network.
func KnownReason(err error, advice string) string {
	var (
		network, isOp  = errors.AsType[*net.OpError](err)
		lookup, isDNS  = errors.AsType[*net.DNSError](err)
		errno, isErrno = errors.AsType[syscall.Errno](err)
	)
	switch refused := find[*trust.Error](err); { // this program refused the connection
	case refused != nil:
		return refused.Error()
	case errors.Is(err, context.Canceled):
		return Cancelled
	case IsTLS(err):
		return reasonOfTLS(err, advice)
	case isDNS && isOfProxy(err, lookup.Name):
		return strings.TrimSpace("the host "+shown(lookup.Name)) + ", which is that of a proxy, cannot be found; check the argument proxy, or " +
			"HTTPS_PROXY and HTTP_PROXY: " + shown(lookup.Err)
	case isDNS:
		return strings.TrimSpace("the host "+shown(lookup.Name)) + NotFound + ": " + shown(lookup.Err)
	case IsTimeout(err):
		return NotInTime
	case isOp && network.Op == "proxyconnect":
		return "the proxy cannot be reached; check the argument proxy, or HTTPS_PROXY and HTTP_PROXY: " + shown(network.Error())
	case isOp && errors.Is(err, syscall.ECONNRESET):
		return Ended + ": " + shown(network.Error())
	case isOp:
		return NotReached + ": " + shown(network.Error())
	case isErrno:
		return "the connection failed: " + errno.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return BrokeOff
	}
	return reasonInText(err.Error(), advice)
}

// isOfProxy reports whether a host that was looked up belongs to a proxy, because it is not the host of
// the request.
func isOfProxy(err error, host string) bool {
	request, ok := errors.AsType[*url.Error](err)
	if !ok {
		return false
	}
	u, err := url.Parse(request.URL)
	name := func(s string) string { return strings.ToLower(strings.TrimSuffix(s, ".")) }
	return err == nil && u.Hostname() != "" && host != "" && name(u.Hostname()) != name(host)
}

// IsTimeout reports whether the answer did not come in time. It returns false if connecting took too
// long, because the server then cannot be reached.
func IsTimeout(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return false
	}
	slow, ok := errors.AsType[net.Error](err)
	return errors.Is(err, context.DeadlineExceeded) || ok && slow.Timeout()
}

// IsTLS reports whether err is an error of TLS, so that another attempt would fail in the same way.
func IsTLS(err error) bool {
	return find[*trust.Error](err) != nil || certificateError(err) != nil || isPlain(err) || isAlert(err)
}

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

// These are results of [Reason], or the beginnings of results.
const (
	NoAnswer         = "there was no complete answer"
	NotInTime        = NoAnswer + " in time"
	NotReached       = "the server cannot be reached; check the address, proxies, and that it runs"
	Ended            = "the server ended the connection; check the address, the port, whether TLS is expected there, and proxies"
	BrokeOff         = "the connection broke off before the answer was complete"
	Invalid          = "the connection failed, or the answer is not valid; check the address, and proxies if there are any"
	Cancelled        = "the request was cancelled"
	NotFound         = " cannot be found; check its name, and proxies" // after the host
	NotTLS           = "the server does not speak TLS; check the port and the scheme"
	NoHandshake      = "the TLS handshake failed"
	NotTrusted       = "the server's certificate is not trusted"
	UnknownAuthority = "the server's certificate is signed by an unknown authority; if that is expected, " // the remedy follows
)

// reasonInText returns the parts of an error's text that are known to be harmless, for clients
// whose errors are only texts.
func reasonInText(text, trust string) string {
	return answers.Find([]answers.Row{
		{Said: "certificate signed by unknown authority", Unless: trust == "", Text: UnknownAuthority + trust},
		{Said: "certificate signed by unknown authority", Text: NotTrusted + ": certificate signed by unknown authority"},
		{Said: "certificate has expired", Text: NotTrusted + ": certificate has expired"},
		{Said: "certificate is valid for", Text: NotTrusted + ": certificate is valid for another host"},
		{Said: "first record does not look like a TLS handshake", Text: NotTLS},
		// The bytes are a TLS alert: the server could not read the request.
		{Said: `malformed HTTP response "\x15\x03`, Text: "the server speaks TLS at this port; use https://"},
		{Said: "no such host", Text: "the host" + NotFound},
		{Said: "connection refused", Text: NotReached + ": connection refused"},
		{Said: "connection reset", Text: NotReached + ": connection reset"},
		{Said: "network is unreachable", Text: NotReached + ": network is unreachable"},
		{Said: "i/o timeout", Text: NotReached + ": i/o timeout"},
		{Said: "failed to do connect handshake", Text: "the proxy refuses the connection"},
		{Said: "context deadline exceeded", Text: NotInTime},
	}, 0, "", text).Text
}

func shown(s string) string { return outside.Line(s, maxReason) }

// certificateError returns the error in err about a certificate that is not trusted, nil if there is
// none. Some clients verify certificates themselves, without the error of crypto/tls that wraps such
// errors.
func certificateError(err error) error {
	if wrapped, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return wrapped.Err
	}
	return cmp.Or(find[x509.UnknownAuthorityError](err), find[x509.CertificateInvalidError](err), find[x509.HostnameError](err),
		find[x509.SystemRootsError](err))
}

// find returns the error of type E in err, nil if there is none.
func find[E error](err error) error {
	if found, ok := errors.AsType[E](err); ok {
		return found
	}
	return nil
}

// isPlain reports whether the server did not speak TLS.
func isPlain(err error) bool {
	_, ok := errors.AsType[tls.RecordHeaderError](err)
	return ok || errors.Is(err, http.ErrSchemeMismatch)
}

// isAlert reports whether one side ended the connection with an alert of TLS,
// such as "bad certificate".
func isAlert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "remote error" || op.Op == "local error")
}

// These are the titles of warnings about working connections.
const (
	NotVerified  = "Unverified connection"
	NotEncrypted = "Unencrypted connection"
)

// Warning is a warning about a successful read, such as a weakness of the connection.
type Warning struct {
	Title string // a few words
	Text  string // complete sentences
}

// Unverified returns the warning about a server, called whose, that was not verified. The text harm
// describes the harm that others on the way can do.
func Unverified(whose, because, harm string) Warning {
	return Warning{NotVerified, "The certificate of " + whose + " was not verified, because " + because +
		". Anybody on the way can " + harm + "."}
}

// Unencrypted returns the warning about a connection without TLS. The text what names the data
// that was sent over it.
func Unencrypted(what, because, harm string) Warning {
	return Warning{NotEncrypted, what + " sent without encryption, because " + because + ". Anybody on the way can " + harm + "."}
}

// Exposed records which services were called without encryption, for callers that cannot know it
// beforehand, because variables and profiles choose endpoints, too. Nil records nothing.
type Exposed struct {
	mu       sync.Mutex
	services []string
}

// Note records the service of a request if others can read the request. A request without the name of a
// service is ignored, because it goes to a nearby service, such as a container's own.
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

// Services returns the names of the services that were called without encryption.
func (e *Exposed) Services() []string {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.services)
}

// Warning returns the warning about these services, and the zero value if there are none.
func (e *Exposed) Warning() Warning {
	services := e.Services()
	if len(services) == 0 {
		return Warning{}
	}
	return Unencrypted("The credentials were", "the endpoint of "+strings.Join(services, ", and that of ")+" begins with http", "read them")
}

// IsLoopback reports whether connections to host stay on this machine. The name localhost stands for
// this machine (RFC 6761). In capitals, it does not count, because Go's clients would then use a proxy.
func IsLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// IsExposed reports whether others can read requests to u and replace the answers: the connection
// is not encrypted, and leaves this machine. Proxy is a proxy that is used even for this machine;
// nil for none, and for a proxy that a variable names.
func IsExposed(u, proxy *url.URL) bool {
	return u.Scheme == "http" && (!IsLoopback(u.Hostname()) || proxy != nil && !IsLoopback(proxy.Hostname()))
}

package outside

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
)

const maxReason = 300 // bytes of an error that are shown

// Reason says why there was no answer, in our own words. Errors of clients are
// not shown as they are: some quote what a server or a proxy sent, others the
// URL with its query. Trust says how to trust an authority that the system does
// not know, such as "set ca_file in a consul block of credentials"; it is "" if
// there is no way.
func Reason(err error, trust string) string {
	var (
		network, isOp    = errors.AsType[*net.OpError](err)
		lookup, isDNS    = errors.AsType[*net.DNSError](err)
		slow, canBeSlow  = errors.AsType[net.Error](err)
		errno, isErrno   = errors.AsType[syscall.Errno](err)
		certificate      = certificateError(err)
		_, isUnknownCA   = errors.AsType[x509.UnknownAuthorityError](err)
		alert, isAlerted = errors.AsType[tls.AlertError](err)
	)
	switch {
	case errors.Is(err, context.Canceled):
		return "the request was cancelled"
	case isUnknownCA && trust != "":
		return "the server's certificate is signed by an unknown authority; if that is expected, " + trust
	case certificate != nil:
		return "the server's certificate is not trusted: " + Line(certificate.Error(), maxReason)
	case isPlain(err):
		return "the server does not speak TLS; check the port and the scheme"
	case isAlerted:
		return "the TLS handshake failed: " + alert.Error()
	case isDNS:
		return fmt.Sprintf("the host %s cannot be found: %s", Line(lookup.Name, maxReason), Line(lookup.Err, maxReason))
	case errors.Is(err, context.DeadlineExceeded), canBeSlow && slow.Timeout():
		return "there was no complete answer in time"
	case isOp:
		return "the server cannot be reached: " + Line(network.Error(), maxReason)
	case isErrno:
		return "the connection failed: " + errno.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection broke off before the answer was complete"
	}
	return reasonInText(err.Error())
}

// reasonInText picks out of the text of an error what is known to be harmless,
// for clients that keep nothing but the text.
func reasonInText(text string) string {
	for _, known := range []string{
		"no such host", "connection refused", "connection reset", "network is unreachable", "i/o timeout",
		"certificate signed by unknown authority", "certificate has expired", "certificate is valid for",
		"doesn't match the requested domain", "failed to do connect handshake",
	} {
		if strings.Contains(text, known) {
			return "the server cannot be reached: " + known
		}
	}
	return "the connection failed, or the answer is not valid; check the address, and proxies if there are any"
}

// IsTLS reports whether err is about TLS, so that another try ends the same way.
func IsTLS(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	_, alerted := errors.AsType[tls.AlertError](err)
	return certificateError(err) != nil || isPlain(err) || alerted || ok && (op.Op == "remote error" || op.Op == "local error")
}

// certificateError returns why a certificate is not trusted, nil if err is not
// about one. Some clients verify by themselves, without the error that
// crypto/tls wraps around the others.
func certificateError(err error) error {
	if wrapped, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return wrapped.Err
	}
	if unknown, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return unknown
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		return invalid
	}
	if host, ok := errors.AsType[x509.HostnameError](err); ok {
		return host
	}
	if roots, ok := errors.AsType[x509.SystemRootsError](err); ok {
		return roots
	}
	return nil
}

// isPlain reports whether the server spoke something else than TLS.
func isPlain(err error) bool {
	_, ok := errors.AsType[tls.RecordHeaderError](err)
	return ok || errors.Is(err, http.ErrSchemeMismatch)
}

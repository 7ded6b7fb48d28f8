package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	nethttp "net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// refusal is a status other than 200.
type refusal int

func (r refusal) Error() string { return "the server answered " + status(int(r)) }

// statusOf returns the status that err is about, 0 when it is about none.
func statusOf(err error) int {
	r, _ := errors.AsType[refusal](err)
	return int(r)
}

// ownError is in our own words, and so safe to show. Errors of net/http are
// not: some quote what the server sent, or the URL with its signature.
type ownError struct {
	error
	final bool // another try would give the same
}

func (e ownError) Unwrap() error { return e.error }

func final(format string, args ...any) error { return ownError{fmt.Errorf(format, args...), true} }
func again(format string, args ...any) error { return ownError{fmt.Errorf(format, args...), false} }

func isFinal(err error) bool {
	if own, ok := errors.AsType[ownError](err); ok {
		return own.final
	}
	return statusOf(err) != 0 || isTLS(err)
}

func isTLS(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return errors.Is(err, nethttp.ErrSchemeMismatch) ||
		ok && (op.Op == "remote error" || op.Op == "local error") // an alert, such as "bad certificate"
}

// fail makes an error for people of what a request of the API came to. What 403
// and 404 mean depends on what was asked for.
func (x *exchange) fail(ctx context.Context, err error, denied func(code int) error) error {
	switch code := statusOf(err); {
	case code == nethttp.StatusUnauthorized && x.tokenSent:
		return fmt.Errorf("%s refused the token (%s); it may be wrong, expired or revoked", x.origin(), status(code))
	case code == nethttp.StatusForbidden, code == nethttp.StatusNotFound, code == nethttp.StatusUnauthorized:
		return denied(code)
	}
	return x.explain(ctx, err)
}

// explain makes an error for people: what happened, where, how often.
func (x *exchange) explain(ctx context.Context, err error) error {
	tries := ""
	if x.tries > 1 {
		tries = fmt.Sprintf(" (after %d tries)", x.tries)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("the read was cancelled: %w", context.Cause(ctx))
	}
	return fmt.Errorf("%s: %w%s", x.origin(), x.reason(err), tries)
}

func (x *exchange) reason(err error) error {
	var (
		own, isOwn        = errors.AsType[ownError](err)
		refused, isStatus = errors.AsType[refusal](err)
		network, isOp     = errors.AsType[*net.OpError](err)
		slow, canBeSlow   = errors.AsType[net.Error](err)
		_, isUnknownCA    = errors.AsType[x509.UnknownAuthorityError](err)
		invalid, isTLSErr = errors.AsType[*tls.CertificateVerificationError](err)
	)
	switch {
	case isOwn:
		return own.error
	case isStatus:
		return refused
	case isUnknownCA:
		return fmt.Errorf("the server's certificate is signed by an unknown authority; if that is expected, "+
			"set client_ca_certificate_pem in a remote block of credentials with url = %q, in the provider block", x.origin()+"/")
	case isTLSErr:
		return errors.New(printable(invalid.Error()))
	case errors.Is(err, nethttp.ErrSchemeMismatch):
		return errors.New("the server does not speak https at this port")
	case isOp:
		return errors.New("the server cannot be reached: " + printable(network.Error()))
	case canBeSlow && slow.Timeout():
		return fmt.Errorf("there was no complete answer within %s", x.patience.timeout)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the connection broke off before the answer was complete")
	default:
		return errors.New("the connection failed, or the answer is not valid HTTP")
	}
}

// origin is where the last request went.
func (x *exchange) origin() string { return printable(source.Origin(x.asked)) }

// printable is text from outside, fit to be shown.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
	const most = 300
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return s
}

// status is in our words too: a server may put anything into its own.
func status(code int) string {
	if text := nethttp.StatusText(code); text != "" {
		return strconv.Itoa(code) + " " + text
	}
	return strconv.Itoa(code)
}

package http

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	nethttp "net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// ownError is in our own words, and so safe to show. Errors of net/http are
// not: some quote what the server sent, or the URL with its query.
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
	if _, missing := source.IsMissing(err); missing {
		return true
	}
	return isTLS(err)
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

// explain makes an error for people: what happened, where a redirect led, how
// often. The caller says which source it was.
func (x *exchange) explain(ctx context.Context, err error) error {
	if missing, ok := source.IsMissing(err); ok {
		return missing
	}
	tries := ""
	if x.tries > 1 {
		tries = fmt.Sprintf(" (after %d tries)", x.tries)
	}
	return fmt.Errorf("%w%s%s", x.reason(ctx, err), x.redirected(), tries)
}

func (x *exchange) reason(ctx context.Context, err error) error {
	var (
		own, isOwn        = errors.AsType[ownError](err)
		network, isOp     = errors.AsType[*net.OpError](err)
		slow, canBeSlow   = errors.AsType[net.Error](err)
		_, isUnknownCA    = errors.AsType[x509.UnknownAuthorityError](err)
		invalid, isTLSErr = errors.AsType[*tls.CertificateVerificationError](err)
	)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("the read was cancelled: %w", ctx.Err())
	case isOwn:
		return own.error
	case isUnknownCA:
		return errors.New("the server's certificate is signed by an unknown authority; if that is expected, " +
			"set client_ca_certificate_pem in an http block of credentials, in the provider block")
	case isTLSErr:
		return errors.New(printable(invalid.Error()))
	case errors.Is(err, nethttp.ErrSchemeMismatch):
		return errors.New("the server does not speak https at this port")
	case isOp:
		return errors.New("the server cannot be reached: " + printable(network.Error()))
	case canBeSlow && slow.Timeout():
		return fmt.Errorf("there was no complete answer within %s; timeout can be raised", x.patience.timeout)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the connection broke off before the answer was complete")
	default:
		return errors.New("the connection failed, or the answer is not valid HTTP")
	}
}

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

// public returns u without what may be secret in it.
func public(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}

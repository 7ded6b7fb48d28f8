package web

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// ownError is in our own words, and so safe to show. Errors of net/http are
// not: some quote what the server sent, or the URL with its query.
type ownError struct {
	error
	final bool // another try would give the same
}

func (e ownError) Unwrap() error { return e.error }

// Final is an error in our own words. Another try would give the same.
func Final(format string, args ...any) error { return ownError{fmt.Errorf(format, args...), true} }

// Again is an error in our own words. Another try may help.
func Again(format string, args ...any) error { return ownError{fmt.Errorf(format, args...), false} }

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
	op, ok := errors.AsType[*net.OpError](err)
	return isPlain(err) || ok && (op.Op == "remote error" || op.Op == "local error") // an alert, such as "bad certificate"
}

// isPlain reports whether the server spoke something else than TLS.
func isPlain(err error) bool {
	_, ok := errors.AsType[tls.RecordHeaderError](err)
	return ok || errors.Is(err, http.ErrSchemeMismatch)
}

// Reason is [outside.Reason], unless err is in our own words.
func Reason(err error, trust string) string {
	if own, ok := errors.AsType[ownError](err); ok {
		return own.Error()
	}
	return outside.Reason(err, trust)
}

// reason puts err into words.
func (w Wire) reason(err error) error {
	var (
		own, isOwn        = errors.AsType[ownError](err)
		network, isOp     = errors.AsType[*net.OpError](err)
		lookup, isDNS     = errors.AsType[*net.DNSError](err)
		slow, canBeSlow   = errors.AsType[net.Error](err)
		_, isUnknownCA    = errors.AsType[x509.UnknownAuthorityError](err)
		invalid, isTLSErr = errors.AsType[*tls.CertificateVerificationError](err)
	)
	switch {
	case isOwn:
		return own
	case isUnknownCA && w.Trust != "":
		return errors.New("the certificate of the server is signed by an unknown authority; if that is expected, " + w.Trust)
	case isTLSErr:
		return errors.New("the certificate of the server is not trusted: " + Printable(invalid.Err.Error()))
	case isPlain(err):
		return errors.New("the server does not speak TLS; check the port and the scheme")
	case isDNS:
		return fmt.Errorf("the host %s cannot be found: %s", Printable(lookup.Name), Printable(lookup.Err))
	case isOp:
		return errors.New("the server cannot be reached: " + Printable(network.Error()))
	case canBeSlow && slow.Timeout() && w.Attr != "":
		return fmt.Errorf("there was no complete answer within %s; %s can be raised", w.Timeout, w.Attr)
	case canBeSlow && slow.Timeout():
		return fmt.Errorf("there was no complete answer within %s", w.Timeout)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the connection broke off before the answer was complete")
	default:
		return errors.New("the connection failed, or the answer is not valid HTTP")
	}
}

// Printable is text from outside, fit to be shown.
func Printable(s string) string {
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

// Status is in our words too: a server may put anything into its own.
func Status(code int) string {
	if text := http.StatusText(code); text != "" {
		return strconv.Itoa(code) + " " + text
	}
	return strconv.Itoa(code)
}

package consul

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	nethttp "net/http"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// ownError is in our own words, and so safe to show. Errors of net/http are
// not: some quote what the server sent. Another try would give the same.
type ownError struct{ error }

func (e ownError) Unwrap() error { return e.error }

func final(format string, args ...any) error { return ownError{fmt.Errorf(format, args...)} }

var (
	errNoKey    = final("there is no such key")
	errTooLarge = final("the value is too large")
	errRedirect = final("the server redirects to another place, which Consul does not do for keys; nothing was sent there")
)

func isFinal(err error) bool {
	if _, ok := errors.AsType[ownError](err); ok {
		return true
	}
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

// explain makes an error for people.
func (c *client) explain(ctx context.Context, err error) error {
	var (
		own, isOwn        = errors.AsType[ownError](err)
		network, isOp     = errors.AsType[*net.OpError](err)
		lookup, isDNS     = errors.AsType[*net.DNSError](err)
		slow, canBeSlow   = errors.AsType[net.Error](err)
		_, isUnknownCA    = errors.AsType[x509.UnknownAuthorityError](err)
		_, isPlain        = errors.AsType[tls.RecordHeaderError](err)
		invalid, isTLSErr = errors.AsType[*tls.CertificateVerificationError](err)
	)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case isOwn:
		return own
	case isUnknownCA:
		return errors.New("the certificate of the server is signed by an unknown authority; if that is expected, " +
			"set ca_file in a consul block of credentials, in the provider block")
	case isTLSErr:
		return errors.New("the certificate of the server is not trusted: " + printable(invalid.Err.Error()))
	case isPlain, errors.Is(err, nethttp.ErrSchemeMismatch):
		return errors.New("the server does not speak TLS; check the port and the scheme")
	case isDNS:
		return errors.New("the host of the server cannot be found: " + printable(lookup.Err))
	case isOp && !network.Timeout():
		return errors.New("the server cannot be reached: " + printable(network.Error()))
	case canBeSlow && slow.Timeout():
		return fmt.Errorf("there was no complete answer within %s", c.patience.timeout)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the connection broke off before the answer was complete")
	default:
		return errors.New("the connection failed, or the answer is not valid HTTP")
	}
}

// refusal is an answer that is not the key. Consul says why in words; those that
// are looked for are its own, and none is shown.
func (x *exchange) refusal(resp *nethttp.Response) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // as much as there is
	says := func(part string) bool { return strings.Contains(string(text), part) }
	code := resp.StatusCode
	switch {
	case says("ACL not found") && code == nethttp.StatusForbidden:
		return final("Consul does not know the token (403 Forbidden, ACL not found); it may be wrong, expired or deleted")
	case code == nethttp.StatusForbidden && !x.sends:
		return final("Consul does not allow to read the key %q without a token (403 Forbidden); set access_token in a consul block of credentials, in the provider block", x.key)
	case code == nethttp.StatusForbidden:
		return final("Consul does not allow to read the key %q (403 Forbidden); what the token needs is a policy with %s", x.key, x.rule())
	case code == nethttp.StatusUnauthorized:
		return final("the server did not accept the user name and password (401 Unauthorized); check http_auth in the consul block of credentials, in the provider block")
	case says("invalid key name"):
		return final("Consul refuses the name of the key %q (%s): it must not begin or end with a space. Consul 1.21.5 also refuses a colon, which the keys of workspaces have; "+
			"another version does not", x.key, status(code))
	case code == nethttp.StatusBadRequest && (x.where.namespace != "" || x.where.partition != ""):
		return final("Consul did not understand the request (%s); only Consul Enterprise has namespaces and partitions", status(code))
	case says("No path to datacenter"):
		return final("Consul knows no datacenter %q, or cannot reach it (%s)", x.where.datacenter, status(code))
	case says("No cluster leader"):
		return final("the cluster of Consul has no leader at the moment (%s)", status(code))
	default:
		return final("the server answered %s", status(code))
	}
}

var partPattern = regexp.MustCompile(`^(.*/tfstate\.)[0-9a-f]{32}/[0-9]+$`)

// rule is what a policy needs for the key, in Consul's language. The names of
// the parts change with the state.
func (x *exchange) rule() string {
	if m := partPattern.FindStringSubmatch(x.key); m != nil {
		return fmt.Sprintf("key_prefix %q { policy = \"read\" }", m[1])
	}
	return fmt.Sprintf("key %q { policy = \"read\" }", x.key)
}

// status is in our words too: a server may put anything into its own.
func status(code int) string {
	if text := nethttp.StatusText(code); text != "" {
		return strconv.Itoa(code) + " " + text
	}
	return strconv.Itoa(code)
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

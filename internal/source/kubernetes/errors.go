package kubernetes

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	errPatience = errors.New("the server did not answer in time")

	// errUnauthorized is for the one who may ask again with new credentials.
	errUnauthorized = errors.New("the server did not accept the credentials (401 Unauthorized)")
	// errNotThere means that the server knows the kind, and has no such object.
	errNotThere = errors.New("there is no such object")
)

// explain makes an error for people. What the server wrote is not in it.
func (c *client) explain(ctx context.Context, what thing, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return c.refusal(what, status.ErrStatus)
	}
	var (
		untrusted, isTLS = errors.AsType[*tls.CertificateVerificationError](err)
		network, isOp    = errors.AsType[*net.OpError](err)
		lookup, isDNS    = errors.AsType[*net.DNSError](err)
		slow, canBeSlow  = errors.AsType[net.Error](err)
		_, isPlain       = errors.AsType[tls.RecordHeaderError](err)
	)
	switch {
	case errors.Is(err, errRedirect):
		return errRedirect
	case isTLS:
		return fmt.Errorf("the certificate of the server is not trusted: %s; set cluster_ca_certificate in the kubernetes block of credentials", shown(untrusted.Err))
	case isPlain, errors.Is(err, http.ErrSchemeMismatch):
		return errors.New("the server does not speak TLS; is the port right?")
	case isDNS:
		return fmt.Errorf("the host of the server cannot be found: %s", lookup.Err)
	case canBeSlow && slow.Timeout():
		return errPatience
	case isOp:
		return fmt.Errorf("the server cannot be reached: %w", network.Err)
	}
	return errors.New("the connection to the server was lost")
}

// refusal is an answer that is not the object.
func (c *client) refusal(what thing, status metav1.Status) error {
	text := http.StatusText(int(status.Code))
	if text == "" {
		text = "unknown status"
	}
	switch code := status.Code; {
	case code == http.StatusUnauthorized && !c.sends:
		return fmt.Errorf("%w: there are none; set token, exec or another one in the kubernetes block of credentials, in the provider block", errUnauthorized)
	case code == http.StatusUnauthorized:
		return fmt.Errorf("%w; they may be wrong or expired", errUnauthorized)
	case code == http.StatusForbidden && what.name == "":
		return fmt.Errorf("the server does not allow to read %s (403 Forbidden); set resource to the plural name of the kind, and it is not asked", what)
	case code == http.StatusForbidden:
		return fmt.Errorf("the server does not allow to read %s (403 Forbidden); what it takes is %s", what, what.rule())
	case code == http.StatusNotFound && isAbout(status, what):
		return errNotThere
	case code == http.StatusNotFound:
		return fmt.Errorf("the server has no API for %s (404 Not Found); check the host, and whether the custom resource is installed in this version", what)
	default:
		return fmt.Errorf("the server answered %d %s", code, text)
	}
}

// isAbout reports whether a 404 is about the object itself, and not about the
// path: a wrong host or a missing custom resource does not show that there is
// no state.
func isAbout(status metav1.Status, what thing) bool {
	d := status.Details
	return status.Reason == metav1.StatusReasonNotFound && d != nil && what.name != "" && d.Name == what.name && d.Group == what.group &&
		(d.Kind == what.resource || d.Kind == "") &&
		!slices.ContainsFunc(d.Causes, func(c metav1.StatusCause) bool { return c.Type == metav1.CauseTypeUnexpectedServerResponse })
}

// shown makes the text of an error, which may have names of the server in it,
// fit to be shown.
func shown(err error) string {
	const limit = 200
	text := err.Error()
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}

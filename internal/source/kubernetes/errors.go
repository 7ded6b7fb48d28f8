package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/answers"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
)

var (
	errPatience = errors.New("the server did not answer in time")

	// errUnauthorized means that trying again with new credentials may help.
	errUnauthorized = errors.New("the server did not accept the credentials (401 Unauthorized)")
	// errNotThere means that the server knows the kind but has no such object.
	errNotThere = errors.New("there is no such object")
)

// explain returns an error that does not repeat any text from the server.
func (c *client) explain(ctx context.Context, what document, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return c.refusal(what, status.ErrStatus)
	}
	switch {
	case errors.Is(err, errRedirect):
		return errRedirect
	case netfail.IsTimeout(err):
		return errPatience
	}
	return errors.New(netfail.Reason(err, "set cluster_ca_certificate in {credentials}"))
}

// refusal returns the error for a response that is a Status instead of the document.
func (c *client) refusal(what document, status metav1.Status) error {
	code := int(status.Code)
	return answers.Find([]answers.Row{
		{Status: "401", Unless: c.sends, Wraps: errUnauthorized,
			Text: "no credentials were sent; set token or exec in {credentials}"},
		{Status: "401", Wraps: fmt.Errorf("%w; correct or renew them in {credentials} or in the kubeconfig",
			errUnauthorized)},
		{Status: "403", Unless: what.name != "", Text: fmt.Sprintf("the server does not allow reading %s (403 Forbidden); set the argument "+
			"resource to the plural name of the kind, so that this request is not needed", what)},
		{Status: "403", Text: fmt.Sprintf("the server does not allow reading %s (403 Forbidden); allow %s", what, what.rule())},
		{Status: "404", Unless: !isAbout(status, what), Wraps: errNotThere},
		{Status: "404", Text: fmt.Sprintf("the server has no API for %s (404 Not Found); check the host, and whether the custom resource is "+
			"installed in this version", what)},
		{Wraps: web.Unexpected("the server", code)},
	}, code, "", "").Err()
}

// isAbout reports whether a 404 is about the object itself. A 404 about the path, caused by a wrong host or a
// missing custom resource, does not mean that there is no state.
func isAbout(status metav1.Status, what document) bool {
	d := status.Details
	return status.Reason == metav1.StatusReasonNotFound && d != nil && what.name != "" && d.Name == what.name && d.Group == what.group &&
		(d.Kind == what.resource || d.Kind == "") &&
		!slices.ContainsFunc(d.Causes, func(c metav1.StatusCause) bool { return c.Type == metav1.CauseTypeUnexpectedServerResponse })
}

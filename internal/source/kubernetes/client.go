package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/meter"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

const (
	patience    = 2 * time.Minute // limit for one response, including retries
	maxRetries  = 2               // how often a request is repeated if the server sends Retry-After
	maxResponse = 8 << 20         // size limit of a response, in bytes; a server stores objects of up to about 1.5 MiB
)

// client sends requests to one server.
type client struct {
	rest     *rest.RESTClient
	patience time.Duration
	expires  time.Time
	sends    bool             // whether requests carry credentials
	warnings []source.Warning // connection warnings, for successful reads
}

func newClient(conn *connection, patience time.Duration) (*client, error) {
	c := rest.CopyConfig(conn.Config)
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // for Status, the format of errors
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.QPS = -1
	c.DisableCompression = true // states are already compressed
	c.UserAgent = "terraform-provider-statecrypt"
	c.WarningHandler = rest.NoWarnings{}
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return web.ReadOnly{Next: web.Brief{Next: next}} })
	over, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, errors.New("the certificates or keys for the cluster are not in PEM format, do not belong together, or are incomplete; " +
			"check {credentials} or the kubeconfig")
	}
	over.CheckRedirect = func(*http.Request, []*http.Request) error { return errRedirect }
	asks, err := rest.UnversionedRESTClientForConfigAndClient(c, over)
	if err != nil {
		return nil, errors.New("the cluster's host is not a URL; write a URL like https://cluster.example.com:6443")
	}
	base := asks.Get().URL()
	proxy, _ := c.Proxy(&http.Request{URL: base})
	sends := c.BearerToken != "" || c.Username != "" || c.Password != "" || len(c.CertData) > 0
	return &client{
		rest: asks, patience: patience, expires: conn.expires, sends: sends,
		warnings: web.Warnings(c.Insecure && base.Scheme == "https", "insecure is set",
			sends && netfail.IsExposed(base, proxy), "the host begins with http"),
	}, nil
}

var errRedirect = errors.New("the server redirects to another address, but a Kubernetes API server never does; check the host")

// expired reports whether the plugin's credentials have expired or will expire within 10 seconds.
func (c *client) expired(now time.Time) bool {
	return !c.expires.IsZero() && now.After(c.expires.Add(-10*time.Second))
}

// get returns a document, such as an object, from the server.
func (c *client) get(ctx context.Context, what document) ([]byte, error) {
	limited, cancel := context.WithTimeoutCause(ctx, c.patience, errPatience)
	defer cancel()
	// client-go takes its logger from the context. This logger writes nothing, because log messages could
	// contain secrets.
	limited = klog.NewContext(limited, klog.Logger{})
	body, err := c.rest.Get().AbsPath(what.path()...).MaxRetries(maxRetries).Stream(limited)
	if err != nil {
		return nil, c.explain(limited, what, err)
	}
	defer body.Close()
	data, err := meter.Read(body, -1, maxResponse)
	switch {
	case limited.Err() != nil: // while net/http closes the connection, it may mistake late bytes for a response
		return nil, context.Cause(limited)
	case meter.IsTooLarge(err):
		return nil, fmt.Errorf("the server's answer for %s is larger than %d bytes, the maximum for an object", what, maxResponse)
	case err != nil:
		return nil, c.explain(limited, what, err)
	}
	return data, nil
}

package gcpkms

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"cloud.google.com/go/auth"
	kms "cloud.google.com/go/kms/apiv1"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/googleauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/trust"
)

const (
	// defaultPatience is how long the client retries by its own settings if
	// there is no deadline.
	defaultPatience = 60 * time.Second

	// maxAnswer is in bytes. Cloud KMS encrypts at most 64 KiB:
	// https://docs.cloud.google.com/kms/docs/reference/rest/v1/projects.locations.keyRings.cryptoKeys/encrypt
	maxAnswer = 1 << 20

	// impersonateScope is the one that OpenTofu requests; Cloud KMS has no
	// narrower one:
	// https://developers.google.com/identity/protocols/oauth2/scopes#cloudkms
	impersonateScope = "https://www.googleapis.com/auth/cloudkms"

	// endpoint is the address of Cloud KMS.
	// https://cloud.google.com/kms/docs/reference/rpc
	endpoint = "cloudkms.googleapis.com:443"
)

// connection is a client that Close may close while it is in use.
type connection struct {
	*kms.KeyManagementClient
	closed atomic.Bool
}

func (c *connection) close() {
	if !c.closed.Swap(true) {
		_ = c.Close() // what it was used for has come
	}
}

func (c *connection) open() bool { return !c.closed.Load() }

// Close closes the connection to Cloud KMS. Calls that are under way are made again.
func (p *provider) Close() {
	p.closes.Add(1)
	p.clients.Clear()
}

type method[Request, Response any] func(
	*kms.KeyManagementClient, context.Context, Request, ...gax.CallOption,
) (Response, error)

// call makes one call, on another connection if Close closes the first one
// meanwhile.
func call[Request, Response any](
	ctx context.Context, p *provider, verb string, method method[Request, Response], request Request,
) (Response, error) {
	var none Response
	for {
		closes := p.closes.Load()
		c, err := p.clients.Fresh(ctx, struct{}{}, (*connection).open, p.connect)
		if err != nil {
			return none, err
		}
		response, err := retried(ctx, p.patience, c, method, request)
		if p.closes.Load() != closes {
			c.close() // it may have been made while Close was called, and nobody else knows it
		}
		switch {
		case err == nil:
			return response, nil
		case c.open() || ctx.Err() != nil:
			return none, p.explain(ctx, verb, err)
		}
	}
}

// retried retries like the client itself: while the service is unavailable, and no
// longer than patience.
func retried[Request, Response any](
	ctx context.Context, patience time.Duration, c *connection, method method[Request, Response], request Request,
) (Response, error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var reason error // why the last attempt failed
	response, err := method(c.KeyManagementClient, limited, request, gax.WithRetry(func() gax.Retryer {
		return retryer{gax.OnCodes([]codes.Code{codes.Unavailable, codes.DeadlineExceeded}, gax.Backoff{
			Initial: 100 * time.Millisecond, Max: 10 * time.Second, Multiplier: 1.3,
		}), &reason}
	}))
	if err != nil && limited.Err() != nil && reason != nil {
		err = reason // and not that the time was up meanwhile
	}
	return response, err
}

// retryer remembers the last failure other than that the time was up, which the
// client forgets. A host that is not there will not be there at the next try.
type retryer struct {
	gax.Retryer
	reason *error
}

func (r retryer) Retry(err error) (time.Duration, bool) {
	if *r.reason == nil || status.Code(err) != codes.DeadlineExceeded {
		*r.reason = err
	}
	if strings.HasSuffix(status.Convert(err).Message(), `: no such host"`) {
		return 0, false
	}
	return r.Retryer.Retry(err)
}

func (p *provider) connect(ctx context.Context) (*connection, error) {
	creds, err := p.access.Open(ctx)
	if err != nil {
		return nil, err
	}
	own := []option.ClientOption{
		option.WithLogger(googleauth.Silence()), option.WithTelemetryDisabled(),
		// The client's own limit is two gigabytes.
		option.WithGRPCDialOption(grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer))),
	}
	if p.access.World.ReadsEnvironment() {
		own = append(own, option.WithAuthCredentials(creds))
	} else if own, err = withoutEnvironment(own, creds); err != nil {
		return nil, err
	}
	client, err := kms.NewKeyManagementClient(context.WithoutCancel(ctx), append(own, p.options...)...)
	if err != nil {
		// The reason may quote what was configured.
		return nil, errors.New("the client of Cloud KMS cannot be set up; check the credentials and Google's own environment variables")
	}
	return &connection{KeyManagementClient: client}, nil
}

// withoutEnvironment adds what keeps the client from the environment, which it
// reads by itself: proxies, the endpoint and the universe, client certificates,
// and the project that is billed. Credentials are put on each call here,
// because the client would look for that project again.
func withoutEnvironment(options []option.ClientOption, creds *auth.Credentials) ([]option.ClientOption, error) {
	if err := (googleauth.Access{}).RefuseVariables(world.GoogleCertificates); err != nil {
		return nil, err
	}
	if err := trust.Check(world.World{}); err != nil {
		return nil, err
	}
	return append(options,
		option.WithoutAuthentication(),
		option.WithEndpoint(endpoint),
		option.WithGRPCDialOption(grpc.WithNoProxy()),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12}))),
		option.WithGRPCDialOption(grpc.WithPerRPCCredentials(googleauth.Bearer{Creds: creds})),
	), nil
}

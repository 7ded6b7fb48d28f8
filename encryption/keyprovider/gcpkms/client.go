package gcpkms

import (
	"context"
	"crypto/tls"
	"errors"
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
	"github.com/statecrypt/terraform-provider-statecrypt/internal/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/world/trust"
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

// call makes one call and retries like the client itself: while the service is
// unavailable, for at most a minute.
func call[Request, Response any](
	ctx context.Context, p *provider, verb string,
	method func(*kms.KeyManagementClient, context.Context, Request, ...gax.CallOption) (Response, error), request Request,
) (Response, error) {
	var none Response
	client, err := p.clients.Do(ctx, struct{}{}, p.connect)
	if err != nil {
		return none, err
	}
	limited, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	var reason error // why the last attempt failed
	response, err := method(client, limited, request, gax.WithRetry(func() gax.Retryer {
		return retryer{gax.OnCodes([]codes.Code{codes.Unavailable, codes.DeadlineExceeded}, gax.Backoff{
			Initial: 100 * time.Millisecond, Max: 10 * time.Second, Multiplier: 1.3,
		}), &reason}
	}))
	if err != nil {
		if limited.Err() != nil && reason != nil {
			err = reason // and not that the time was up meanwhile
		}
		return none, p.explain(ctx, verb, err)
	}
	return response, nil
}

// retryer remembers the last failure other than that the time was up, which the
// client forgets.
type retryer struct {
	gax.Retryer
	reason *error
}

func (r retryer) Retry(err error) (time.Duration, bool) {
	if *r.reason == nil || status.Code(err) != codes.DeadlineExceeded {
		*r.reason = err
	}
	return r.Retryer.Retry(err)
}

func (p *provider) connect(ctx context.Context) (*kms.KeyManagementClient, error) {
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
	return client, nil
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

package awskms

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/awsauth"
)

// connection makes the client when it is first needed, once.
type connection struct {
	settings awsauth.Settings

	turn chan struct{} // a lock that can be given up waiting for
	kms  *kms.Client   // nil until it was made
}

func newConnection(s awsauth.Settings) *connection {
	return &connection{settings: s, turn: make(chan struct{}, 1)}
}

// client returns the client, with credentials that are at hand. That way their
// errors are told apart from those of KMS. What failed is tried again by the
// next caller, because the caller that failed may just have been cancelled.
func (c *connection) client(ctx context.Context) (*kms.Client, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if c.kms != nil {
		if err := c.settings.Retrieve(ctx, c.kms.Options().Credentials); err != nil {
			return nil, err
		}
		return c.kms, nil
	}
	cfg, err := c.settings.Load(ctx)
	if err != nil {
		return nil, err
	}
	c.kms = kms.NewFromConfig(cfg, func(o *kms.Options) {
		if c.settings.MaxWait > 0 {
			o.Retryer = retry.AddWithMaxBackoffDelay(o.Retryer, c.settings.MaxWait)
		}
		c.settings.SetEndpoint(ctx, cfg, kms.ServiceID, &o.BaseEndpoint)
	})
	return c.kms, nil
}

package awskms

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/awsauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/memo"
)

// connection makes the client when it is first needed, once.
type connection struct {
	settings awsauth.Settings
	endpoint string // of KMS; "" leaves it to the SDK
	known    string // the endpoint as far as it is known before the SDK looks it up
	clients  memo.Memo[struct{}, *kms.Client]
}

// client returns the client once it has credentials, so that their errors are
// distinct from those of KMS.
func (c *connection) client(ctx context.Context) (*kms.Client, error) {
	client, err := c.clients.Do(ctx, struct{}{}, c.connect)
	if err != nil {
		return nil, err
	}
	_, err = c.settings.Retrieve(ctx, client.Options().Credentials)
	return client, err
}

func (c *connection) connect(ctx context.Context) (*kms.Client, error) {
	cfg, err := c.settings.Load(ctx)
	if err != nil {
		return nil, err
	}
	return kms.NewFromConfig(cfg, func(o *kms.Options) {
		if c.settings.MaxWait > 0 {
			o.Retryer = retry.AddWithMaxBackoffDelay(o.Retryer, c.settings.MaxWait)
		}
		c.settings.SetEndpoint(ctx, cfg, kms.ServiceID, &o.BaseEndpoint)
		if c.endpoint != "" {
			o.BaseEndpoint = &c.endpoint
		}
	}), nil
}

// setEndpoint reads the endpoint of KMS. One that a variable names is not
// silently replaced by AWS's own.
func (c *connection) setEndpoint(v attr.Values) error {
	if endpoints, ok := v.Block("endpoints"); ok {
		c.endpoint = awsauth.WithScheme(endpoints.String("kms"))
	}
	if c.known = c.endpoint; c.known != "" {
		return nil
	}
	for _, name := range endpointVars() {
		if url, set := v.Environment().Get(name); set {
			c.known = url
			return v.Refuse(name, "endpoints.kms")
		}
	}
	return nil
}

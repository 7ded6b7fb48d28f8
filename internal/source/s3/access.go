package s3

import (
	"cmp"
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/awsauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
)

// access holds the values of a credentials block, and the settings for a client.
type access struct {
	source.Grant
	settings awsauth.Settings
	endpoint string // URL of S3; "" leaves the choice to the SDK
	network  object.Network
}

func newAccess(g source.Grant, n object.Network, region string) (access, error) {
	settings, err := awsauth.Parse(g.Values, region)
	if err != nil {
		return access{}, err
	}
	// The environment may provide credentials for any block, such as an identity that assumes the block's
	// role. It must not choose the server.
	settings.World, settings.MaxWait, settings.Exposed = world.For(n.Env, false), n.MaxWait, n.Exposed
	if err := settings.FillProxies(g.Values, n.Env); err != nil {
		return access{}, err
	}
	endpoints, _ := g.Block("endpoints")
	a := access{Grant: g, settings: settings, endpoint: recognize.WithScheme(endpoints.String("s3")), network: n}
	if a.endpoint != "" && (g.Bool("use_fips_endpoint") || g.Bool("use_dualstack_endpoint")) {
		err = g.Errorf("endpoints", "an endpoint for s3 is set together with use_fips_endpoint or use_dualstack_endpoint; remove one of them")
	}
	return a, err
}

// regionSaysWhere reports whether the region determines the host of S3, or of STS, which returns the keys of
// a role.
func (a access) regionSaysWhere() bool {
	_, role := a.Block("assume_role")
	_, web := a.Block("assume_role_with_web_identity")
	return a.endpoint == "" || (role || web) && a.settings.STSEndpoint == ""
}

// connect gets credentials and returns a client. If the settings restrict the account, it also looks up the
// account of the credentials.
func (a access) connect(ctx context.Context) (*awss3.Client, error) {
	cfg, err := a.settings.Load(ctx)
	if fault.Has[fault.NoCredentials](err) && !a.Found {
		err = fault.Known(fmt.Errorf("%w. To use other credentials, add this to {settings}", err), fault.NoBlock{Path: "credentials.s3",
			Arguments: []string{"access_key = var.aws_access_key", "secret_key = var.aws_secret_key"}})
	}
	if err != nil {
		return nil, err
	}
	transport, err := a.settings.Transport()
	if err != nil {
		return nil, err
	}
	return awss3.NewFromConfig(cfg, func(o *awss3.Options) {
		a.settings.SetEndpoint(ctx, cfg, awss3.ServiceID, &o.BaseEndpoint)
		if a.endpoint != "" {
			o.BaseEndpoint = &a.endpoint
		} else if a.Hands(customerKeyAttr) && !a.Has("shared_config_files") {
			o.BaseEndpoint = nil // an endpoint from a file in the home folder is meant for the user's own secrets
		}
		o.UsePathStyle = a.Bool("use_path_style")
		o.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
			return a.settings.Retrieve(ctx, cfg.Credentials)
		})
		o.ResponseChecksumValidation = cmp.Or(o.ResponseChecksumValidation, aws.ResponseChecksumValidationWhenSupported)
		if a.Bool("skip_s3_checksum") {
			o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		}
		if a.network.Writes { // each request sets its own checksums, as both CLIs do
			o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		}
		object.Restrict(o, transport, a.network)
	}), nil
}

package s3

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/auth/awsauth"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/s3object"
)

const customerKeyLength = 32 // bytes: AES-256

// access says who asks, and where.
type access struct {
	settings     awsauth.Settings
	endpoint     string // "" leaves it to the SDK
	pathStyle    bool
	skipChecksum bool
	insecure     bool
	customerKey  []byte
}

// choose returns the access of the block that a data source calls name.
func choose(s source.Settings, name, region string) (access, error) {
	grant, err := s.Credentials.Named("credentials_name", name)
	if err != nil {
		return access{}, err
	}
	a, err := parse(grant.Values, s.LookupEnv, name, region)
	if wrong, ok := errors.AsType[*attr.Error](err); ok && !grant.Found {
		return access{}, fmt.Errorf("the environment variables AWS_*: %s: %w", wrong.Attr, wrong.Err)
	}
	return a, err
}

func parse(v attr.Values, lookup attr.LookupEnv, name, region string) (access, error) {
	settings, err := awsauth.Parse(v, region)
	if err != nil {
		return access{}, err
	}
	// Who asks may come from the environment for every block, as an identity
	// that assumes its role. Where is asked may not.
	settings.Environment, settings.OwnEndpoints = lookup != nil, name != ""
	if err := settings.FillProxies(v, lookup); err != nil {
		return access{}, err
	}
	a := access{settings: settings, pathStyle: v.Bool("use_path_style"), skipChecksum: v.Bool("skip_s3_checksum"), insecure: v.Bool("insecure")}
	if b, ok := v.Block("endpoints"); ok {
		a.endpoint = awsauth.WithScheme(b.String("s3"))
	}
	if name == "" {
		a.fillEndpoints(lookup)
	}
	if a.endpoint != "" && checkEndpoint(a.endpoint) != nil {
		return access{}, v.Errorf("endpoints", "s3, or %s, must be a URL such as https://s3.example.com, without user name, password or query", endpointVar)
	}
	if a.endpoint != "" && (v.Bool("use_fips_endpoint") || v.Bool("use_dualstack_endpoint")) {
		return access{}, v.Errorf("endpoints", "an endpoint for s3 excludes use_fips_endpoint and use_dualstack_endpoint")
	}
	if text := v.String(customerKeyAttr); text != "" {
		if a.customerKey, err = base64.StdEncoding.DecodeString(text); err != nil || len(a.customerKey) != customerKeyLength {
			return access{}, v.Errorf(customerKeyAttr, "%d bytes in base64 are required, which are 44 characters", customerKeyLength)
		}
	}
	return a, nil
}

func (a *access) fillEndpoints(lookup attr.LookupEnv) {
	if text, ok := lookup.Get(endpointVar, oldEndpointVar); ok && a.endpoint == "" {
		a.endpoint = awsauth.WithScheme(text)
	}
	if text, ok := lookup.Get(stsVar, oldSTSVar); ok && a.settings.STSEndpoint == "" {
		a.settings.STSEndpoint = awsauth.WithScheme(text)
	}
}

func checkEndpoint(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("not an endpoint")
	}
	return nil
}

// client asks S3 in one region, as one identity.
type client struct {
	access
	store    s3object.Store
	warnings []string
}

// connect makes a client. It looks for credentials, and asks for the account
// they are of where that matters.
func (a access) connect(ctx context.Context, timeout, patience time.Duration) (*client, error) {
	cfg, err := a.settings.Load(ctx)
	if err != nil {
		return nil, err
	}
	transport, err := a.settings.Transport()
	if err != nil {
		return nil, err
	}
	asks := awss3.NewFromConfig(cfg, func(o *awss3.Options) {
		a.settings.SetEndpoint(ctx, cfg, awss3.ServiceID, &o.BaseEndpoint)
		if a.endpoint != "" {
			o.BaseEndpoint = &a.endpoint
		}
		o.UsePathStyle = a.pathStyle
		if o.ResponseChecksumValidation == aws.ResponseChecksumValidationUnset {
			o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenSupported
		}
		if a.skipChecksum {
			o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		}
		s3object.Restrict(o, transport, timeout, a.settings.MaxWait)
	})
	c := &client{access: a, store: s3object.Store{Client: asks, Words: words(), Patience: patience}}
	return c, c.checkEncryption(aws.ToString(asks.Options().BaseEndpoint))
}

// checkEncryption refuses to send a key without TLS, as S3 does, and warns of
// what anybody on the way can see.
func (c *client) checkEncryption(endpoint string) error {
	switch plain := strings.HasPrefix(strings.ToLower(endpoint), "http:"); {
	case plain && c.customerKey != nil:
		return fmt.Errorf("%s is sent over TLS only, and the endpoint begins with http", customerKeyAttr)
	case plain:
		c.warnings = []string{"The state was sent without encryption, because the endpoint begins with http. Anybody on the way can read and replace it."}
	case c.insecure:
		c.warnings = []string{"The server's certificate was not verified, because insecure is set. Anybody on the way can read and replace the state."}
	}
	return nil
}

func words() s3object.Words {
	return s3object.Words{
		Store: "S3", Block: "the s3 block of credentials, in the provider block",
		Read: "s3:GetObject", ReadVersion: "s3:GetObjectVersion", List: "s3:ListBucket", Decrypt: "kms:Decrypt",
		Region: "region", CustomerKey: customerKeyAttr, CA: "custom_ca_bundle",
	}
}

package awskms

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"
	"golang.org/x/net/http/httpproxy"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/config"
)

// requestTimeout is what one attempt may take. KMS answers in milliseconds,
// and the SDK would wait for ever.
const requestTimeout = 30 * time.Second

// connection makes the client when it is first needed, once.
type connection struct {
	settings settings

	turn chan struct{} // a lock that can be given up waiting for
	kms  *kms.Client   // nil until it was made
}

func newConnection(s settings) *connection {
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
		if _, err := c.kms.Options().Credentials.Retrieve(ctx); err != nil {
			return nil, c.settings.explainCredentials(err)
		}
		return c.kms, nil
	}
	cfg, err := c.settings.load(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return nil, c.settings.explainCredentials(err)
	}
	if err := c.settings.checkAccount(ctx, cfg); err != nil {
		return nil, err
	}
	c.kms = kms.NewFromConfig(cfg, func(o *kms.Options) {
		if c.settings.maxWait > 0 {
			o.Retryer = retry.AddWithMaxBackoffDelay(o.Retryer, c.settings.maxWait)
		}
		if !c.settings.environment {
			o.BaseEndpoint = fileEndpoint(ctx, cfg, kms.ServiceID)
		}
	})
	return c.kms, nil
}

// load makes the configuration of the clients. This is done here and not with
// hashicorp/aws-sdk-go-base, which assumes each role twice, may write to the
// process's environment, and reads the environment's proxies in any case.
func (s settings) load(ctx context.Context) (aws.Config, error) {
	if !s.environment {
		cfg, err := s.loadWithoutEnvironment(ctx)
		if err != nil {
			return aws.Config{}, err
		}
		return s.assume(cfg), nil
	}
	client, err := s.httpClient()
	if err != nil {
		return aws.Config{}, err
	}
	options, err := s.options(client)
	if err != nil {
		return aws.Config{}, err
	}
	cfg, err := awsconfig.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return aws.Config{}, s.explainSettings(err)
	}
	// The SDK has made a client of its own that also trusts AWS_CA_BUNDLE. That
	// has come here as custom_ca_bundle, where there is no other.
	cfg.HTTPClient = bounded{client}
	// The resolver was for the STS clients within the chain. With one in
	// place, the clients made below would not heed AWS_ENDPOINT_URL_KMS.
	cfg.EndpointResolverWithOptions = nil //nolint:staticcheck // see options
	if s.ownCredentials() == nil {
		if cfg, err = s.withoutOurSecrets(cfg); err != nil {
			return aws.Config{}, err
		}
	}
	return s.assume(cfg), nil
}

func (s settings) options(client *awshttp.BuildableClient) ([]func(*awsconfig.LoadOptions) error, error) {
	options := []func(*awsconfig.LoadOptions) error{
		awsconfig.WithRegion(s.region),
		awsconfig.WithHTTPClient(client),
		awsconfig.WithRetryMaxAttempts(s.attempts),
		awsconfig.WithLogger(logging.Nop{}),
		awsconfig.WithEC2IMDSClientEnableState(s.imds),
		awsconfig.WithEC2IMDSEndpointMode(s.imdsMode),
	}
	add := func(wanted bool, option awsconfig.LoadOptionsFunc) {
		if wanted {
			options = append(options, option)
		}
	}
	configFiles, err := expand(s.configFiles)
	if err != nil {
		return nil, err
	}
	credentialsFiles, err := expand(s.credentialsFiles)
	if err != nil {
		return nil, err
	}
	add(s.retryMode != "", awsconfig.WithRetryMode(s.retryMode))
	add(s.imdsEndpoint != "", awsconfig.WithEC2IMDSEndpoint(s.imdsEndpoint))
	add(s.fips, awsconfig.WithUseFIPSEndpoint(aws.FIPSEndpointStateEnabled))
	add(s.dualStack, awsconfig.WithUseDualStackEndpoint(aws.DualStackEndpointStateEnabled))
	add(s.profile != "", awsconfig.WithSharedConfigProfile(s.profile))
	add(len(configFiles) > 0, awsconfig.WithSharedConfigFiles(configFiles))
	add(len(credentialsFiles) > 0, awsconfig.WithSharedCredentialsFiles(credentialsFiles))
	if p := s.ownCredentials(); p != nil {
		options = append(options, awsconfig.WithCredentialsProvider(p))
	}
	if s.stsEndpoint != "" {
		options = append(options, awsconfig.WithEndpointResolverWithOptions(s.chainResolver())) //nolint:staticcheck // nothing else reaches the STS clients that profiles with roles use
	}
	return options, nil
}

func expand(paths []string) ([]string, error) {
	var out []string
	for _, p := range paths {
		path, err := config.ExpandHome(p)
		if err != nil {
			return nil, err
		}
		out = append(out, path)
	}
	return out, nil
}

// chainResolver sends the STS clients that the SDK makes for profiles with
// roles to the configured endpoint.
func (s settings) chainResolver() aws.EndpointResolverWithOptionsFunc { //nolint:staticcheck // see options
	return func(service, region string, _ ...any) (aws.Endpoint, error) { //nolint:staticcheck // see options
		if service != sts.ServiceID {
			return aws.Endpoint{}, &aws.EndpointNotFoundError{} //nolint:staticcheck // see options
		}
		if s.stsRegion != "" {
			region = s.stsRegion
		}
		return aws.Endpoint{URL: s.stsEndpoint, SigningRegion: region, Source: aws.EndpointSourceCustom}, nil //nolint:staticcheck // see options
	}
}

// httpClient makes a client of its own, so that proxies and trust are those of
// the settings.
func (s settings) httpClient() (*awshttp.BuildableClient, error) {
	tlsConfig := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: s.insecure, //nolint:gosec // the user's choice
	}
	if s.caBundle != "" {
		path, err := config.ExpandHome(s.caBundle)
		if err != nil {
			return nil, fmt.Errorf("custom_ca_bundle: %w", err)
		}
		pem, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("custom_ca_bundle: %w", err)
		}
		tlsConfig.RootCAs = x509.NewCertPool()
		if !tlsConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("custom_ca_bundle: %s holds no certificate in PEM format", path)
		}
	}
	proxies := httpproxy.Config{HTTPProxy: s.httpProxy, HTTPSProxy: s.httpsProxy, NoProxy: s.noProxy}
	find := proxies.ProxyFunc()
	return awshttp.NewBuildableClient().WithTimeout(s.timeout).WithTransportOptions(func(t *http.Transport) {
		t.TLSClientConfig = tlsConfig
		t.Proxy = func(req *http.Request) (*url.URL, error) { return find(req.URL) }
	}), nil
}

// maxAnswer is in bytes. Answers of KMS and STS have a few kilobytes.
const maxAnswer = 1 << 20

// bounded cuts answers: the SDK reads them to their end, unpacked.
type bounded struct{ aws.HTTPClient }

func (b bounded) Do(r *http.Request) (*http.Response, error) {
	response, err := b.HTTPClient.Do(r)
	if response != nil && response.Body != nil {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, maxAnswer), response.Body}
	}
	return response, err
}

// checkAccount asks whose credentials these are, but only where that matters.
func (s settings) checkAccount(ctx context.Context, cfg aws.Config) error {
	if len(s.allowed) == 0 && len(s.forbidden) == 0 {
		return nil
	}
	answer, err := s.sts(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return s.explainAccount(err)
	}
	account := aws.ToString(answer.Account)
	switch {
	case len(s.allowed) > 0 && !slices.Contains(s.allowed, account):
		return fmt.Errorf("the AWS credentials are for the account %q, which allowed_account_ids does not list", account)
	case slices.Contains(s.forbidden, account):
		return fmt.Errorf("the AWS credentials are for the account %q, which forbidden_account_ids lists", account)
	}
	return nil
}

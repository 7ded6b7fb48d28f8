package awsauth

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/signin"
	"github.com/aws/aws-sdk-go-v2/service/sso"
	"github.com/aws/aws-sdk-go-v2/service/ssooidc"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	smithyendpoints "github.com/aws/smithy-go/endpoints"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"golang.org/x/net/http/httpproxy"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/trust"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// requestTimeout is the time limit for one attempt. Services respond in milliseconds, and the SDK itself has
// no limit.
const requestTimeout = 30 * time.Second

// Load returns the configuration for AWS clients. It also retrieves credentials and checks their account, so
// that sign-in errors can be distinguished from service errors.
func (s Settings) Load(ctx context.Context) (aws.Config, error) {
	cfg, err := s.load(ctx)
	if err != nil {
		return aws.Config{}, err
	}
	if _, err = s.Retrieve(ctx, cfg.Credentials); err == nil {
		err = s.checkAccount(ctx, cfg)
	}
	if err != nil {
		CloseIdle(cfg.HTTPClient)
		return aws.Config{}, err
	}
	return cfg, nil
}

// CloseIdle closes the idle connections of the client in a configuration from Load. Connections in use are
// closed after their request.
func CloseIdle(client aws.HTTPClient) {
	if c, ok := client.(limitedClient); ok {
		c.CloseIdleConnections()
	}
}

// Retrieve returns credentials that have not expired. The text of an error is safe to show.
func (s Settings) Retrieve(ctx context.Context, credentials aws.CredentialsProvider) (aws.Credentials, error) {
	keys, err := credentials.Retrieve(ctx)
	if err != nil {
		err = fault.Known(s.explainSTS("no AWS credentials found", err), fault.NoCredentials{})
	}
	return keys, err
}

// load returns the configuration for AWS clients. It does not use hashicorp/aws-sdk-go-base, which assumes
// each role twice, may modify the environment of the process, and always uses the environment's proxies.
func (s Settings) load(ctx context.Context) (aws.Config, error) {
	buildable, err := s.httpClient()
	if err != nil {
		return aws.Config{}, err
	}
	client, err := limited(buildable)
	if err != nil {
		return aws.Config{}, err
	}
	if !s.World.Beside(handsKeys(s.values)).ReadsEnvironment() {
		cfg, err := s.loadWithoutEnvironment(ctx, client)
		if err != nil {
			return aws.Config{}, err
		}
		return s.assume(cfg), nil
	}
	options, err := s.options(buildable)
	if err != nil {
		return aws.Config{}, err
	}
	cfg, err := awsconfig.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return aws.Config{}, s.explainSettings(err)
	}
	// The SDK has created its own client, which also trusts AWS_CA_BUNDLE. Here, that variable is only the
	// default of custom_ca_bundle.
	cfg.HTTPClient = client
	// The resolver was only for the clients in the SDK's credential chain. With it, other clients would
	// ignore AWS_ENDPOINT_URL_* for their service.
	cfg.EndpointResolverWithOptions = nil //nolint:staticcheck // see options
	cfg.APIOptions = nil                  // no limitAnswers, because states are larger than the chain's responses
	if s.ownCredentials() == nil {
		if cfg, err = s.withoutOurSecrets(cfg); err != nil {
			return aws.Config{}, err
		}
	}
	return s.assume(cfg), nil
}

func (s Settings) options(client *awshttp.BuildableClient) ([]func(*awsconfig.LoadOptions) error, error) {
	// The clients in the SDK's credential chain use copies of this client, whose connections cannot be
	// closed. They send few requests, so they need not keep connections.
	client = client.WithTransportOptions(func(t *http.Transport) { t.DisableKeepAlives = true })
	options := []func(*awsconfig.LoadOptions) error{
		awsconfig.WithRegion(s.Region),
		awsconfig.WithHTTPClient(client),
		awsconfig.WithRetryMaxAttempts(s.attempts),
		awsconfig.WithLogger(logging.Nop{}),
		awsconfig.WithAPIOptions([]func(*middleware.Stack) error{limitAnswers}),
		awsconfig.WithEC2IMDSClientEnableState(s.imds),
		awsconfig.WithEC2IMDSEndpointMode(s.imdsMode),
	}
	add := func(wanted bool, option awsconfig.LoadOptionsFunc) {
		if wanted {
			options = append(options, option)
		}
	}
	configFiles, credentialsFiles, err := s.sharedFiles()
	if err != nil {
		return nil, err
	}
	add(s.retryMode != "", awsconfig.WithRetryMode(s.retryMode))
	endpoint := s.values.String("ec2_metadata_service_endpoint")
	add(endpoint != "", awsconfig.WithEC2IMDSEndpoint(endpoint))
	add(s.values.Bool("use_fips_endpoint"), awsconfig.WithUseFIPSEndpoint(aws.FIPSEndpointStateEnabled))
	add(s.values.Bool("use_dualstack_endpoint"), awsconfig.WithUseDualStackEndpoint(aws.DualStackEndpointStateEnabled))
	add(s.profile != "", awsconfig.WithSharedConfigProfile(s.profile))
	add(len(configFiles) > 0, awsconfig.WithSharedConfigFiles(configFiles))
	add(len(credentialsFiles) > 0, awsconfig.WithSharedCredentialsFiles(credentialsFiles))
	if p := s.ownCredentials(); p != nil {
		options = append(options, awsconfig.WithCredentialsProvider(p))
	}
	if s.STSEndpoint != "" || s.OwnEndpoints {
		// No other option affects the STS clients that are used for profiles with roles.
		options = append(options, awsconfig.WithEndpointResolverWithOptions(s.chainResolver())) //nolint:staticcheck // see above
	}
	return options, nil
}

func (s Settings) sharedFiles() (config, credentials []string, err error) {
	expand := func(paths []string) (out []string) {
		for _, p := range paths {
			path, e := world.ExpandHome(p)
			out, err = append(out, path), cmp.Or(err, e)
		}
		return out
	}
	config, credentials = expand(s.configFiles), expand(s.credentialsFiles)
	return config, credentials, err
}

// chainResolver returns a resolver for the clients that the SDK creates for profiles. It directs STS clients
// to the configured endpoint. If the environment must not choose servers, the STS clients and those for
// signing in use AWS's own endpoints.
func (s Settings) chainResolver() aws.EndpointResolverWithOptionsFunc { //nolint:staticcheck // see options
	return func(service, region string, _ ...any) (aws.Endpoint, error) { //nolint:staticcheck // see options
		if service == sts.ServiceID {
			region = cmp.Or(s.values.String("sts_region"), region)
		}
		endpoint := aws.Endpoint{URL: s.STSEndpoint, SigningRegion: region, Source: aws.EndpointSourceCustom} //nolint:staticcheck // see options
		if service == sts.ServiceID && s.STSEndpoint != "" {
			return endpoint, nil
		}
		own, err := s.ownEndpoint(service, region)
		endpoint.URL = own.URI.String()
		return endpoint, err
	}
}

// ownEndpoint returns AWS's own endpoint for a service in the SDK's credential chain. For other services, it
// returns an error that lets the SDK choose the endpoint.
func (s Settings) ownEndpoint(service, region string) (smithyendpoints.Endpoint, error) {
	ctx, fips, dual := context.Background(), s.values.Bool("use_fips_endpoint"), s.values.Bool("use_dualstack_endpoint")
	switch {
	case service == sts.ServiceID:
		return sts.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx,
			sts.EndpointParameters{Region: &region, UseFIPS: &fips, UseDualStack: &dual})
	case !s.OwnEndpoints:
	case service == sso.ServiceID:
		return sso.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx,
			sso.EndpointParameters{Region: &region, UseFIPS: &fips, UseDualStack: &dual})
	case service == ssooidc.ServiceID:
		return ssooidc.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx,
			ssooidc.EndpointParameters{Region: &region, UseFIPS: &fips, UseDualStack: &dual})
	case service == signin.ServiceID:
		return signin.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx,
			signin.EndpointParameters{Region: &region, UseFIPS: &fips, UseDualStack: &dual})
	}
	return smithyendpoints.Endpoint{}, &aws.EndpointNotFoundError{} //nolint:staticcheck // see options
}

// Transport returns a new transport with the proxies and certificate authorities in the settings.
func (s Settings) Transport() (*http.Transport, error) {
	s.Exposed = nil
	client, err := s.httpClient()
	if err != nil {
		return nil, err
	}
	return client.GetTransport(), nil
}

// httpClient returns a new client with the proxies and certificate authorities in the settings.
func (s Settings) httpClient() (*awshttp.BuildableClient, error) {
	tlsConfig := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: s.Unverified(), //nolint:gosec // the user's choice
	}
	if path := s.values.String("custom_ca_bundle"); path != "" {
		pem, err := keyfile.ReadText(path)
		if err != nil {
			return nil, s.values.Errorf("custom_ca_bundle", "%w", err)
		}
		tlsConfig.RootCAs = x509.NewCertPool()
		if !tlsConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("custom_ca_bundle: %s contains no certificate in PEM format; give a file with the "+
				"certificates of the trusted authorities", path)
		}
	}
	proxies := httpproxy.Config{HTTPProxy: s.httpProxy, HTTPSProxy: s.httpsProxy, NoProxy: s.noProxy}
	find := proxies.ProxyFunc()
	return awshttp.NewBuildableClient().WithTimeout(s.Timeout).WithTransportOptions(func(t *http.Transport) {
		t.TLSClientConfig = trust.Config(s.World, tlsConfig)
		t.Proxy = func(req *http.Request) (*url.URL, error) { // called for each request of each client
			if service := awsmiddleware.GetServiceID(req.Context()); service != imds.ServiceID { // the metadata service is local
				s.Exposed.Note(service, req.URL)
			}
			return find(req.URL)
		}
	}), nil
}

// maxAnswer is the maximum size of a response, in bytes. KMS and STS responses have a few kilobytes.
const maxAnswer = 1 << 20

// limitedClient reads each response completely before returning it, because the SDK closes the request body
// as soon as the response begins, and net/http may then close the connection. If the response has more than
// maxAnswer bytes, its body returns an error, because the SDK would use a truncated response.
type limitedClient struct{ *http.Client }

// limited returns the SDK's own client with a transport whose connections can be closed.
func limited(client *awshttp.BuildableClient) (limitedClient, error) {
	own, ok := client.Freeze().(*http.Client)
	if !ok {
		return limitedClient{}, errors.New("the AWS SDK has a client whose connections cannot be closed")
	}
	own.Transport = client.GetTransport()
	return limitedClient{own}, nil
}

var errLong = errors.New("the answer is too long to come from AWS")

func (c limitedClient) Do(r *http.Request) (*http.Response, error) {
	response, err := c.Client.Do(r) //nolint:gosec // a request of the SDK, as without this client
	if err != nil || response.Body == nil {
		return response, err
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
	case r.Context().Err() != nil: // net/http may mistake bytes from a closing connection for the response
		err = r.Context().Err()
	case len(text) > maxAnswer:
		err = errLong
	}
	answer := io.Reader(bytes.NewReader(text))
	if err != nil {
		answer = failedBody{err}
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{answer, response.Body}
	return response, nil
}

// limitAnswers limits the responses to the clients in the SDK's credential chain (instances, containers, SSO
// and STS), as limitedClient does for other clients. If a certificate bundle is set, the SDK does not accept
// a different client for the chain.
func limitAnswers(stack *middleware.Stack) error {
	limit := func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (
		out middleware.DeserializeOutput, metadata middleware.Metadata, err error,
	) {
		out, metadata, err = next.HandleDeserialize(ctx, in)
		if response, ok := out.RawResponse.(*smithyhttp.Response); ok && response.Body != nil {
			response.Body = &limitedBody{ReadCloser: response.Body, left: maxAnswer}
		}
		return out, metadata, err
	}
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("limitAnswers", limit), middleware.After)
}

// limitedBody is a response body that returns errLong after left bytes.
type limitedBody struct {
	io.ReadCloser
	left int
}

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, errLong
	}
	return n, err
}

// failedBody is the body of a response that could not be read.
type failedBody struct{ err error }

func (b failedBody) Read([]byte) (int, error) { return 0, b.err }

// checkAccount returns an error if the settings do not allow the credentials' account. It looks up the
// account only if the settings restrict it.
func (s Settings) checkAccount(ctx context.Context, cfg aws.Config) error {
	allowed, forbidden := s.values.Strings("allowed_account_ids"), s.values.Strings("forbidden_account_ids")
	if len(allowed) == 0 && len(forbidden) == 0 {
		return nil
	}
	answer, err := s.sts(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return s.explainSTS("the AWS account of the credentials cannot be determined", err)
	}
	account := aws.ToString(answer.Account)
	switch {
	case len(allowed) > 0 && !slices.Contains(allowed, account):
		return fmt.Errorf("the account %q of the AWS credentials is not in allowed_account_ids; use credentials of another account, or add "+
			"this account", account)
	case slices.Contains(forbidden, account):
		return fmt.Errorf("the account %q of the AWS credentials is in forbidden_account_ids; use credentials of another "+
			"account", account)
	}
	return nil
}

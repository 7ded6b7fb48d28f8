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

// requestTimeout limits one attempt. Services answer in milliseconds, and the SDK has no limit.
const requestTimeout = 30 * time.Second

// Load returns the configuration of the clients. It also gets credentials and checks their account, so
// that errors of signing in are distinct from errors of the service.
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

// CloseIdle closes the connections of the client in a configuration of Load. A connection in use is
// closed after its request.
func CloseIdle(client aws.HTTPClient) {
	if c, ok := client.(limitedClient); ok {
		c.CloseIdleConnections()
	}
}

// Retrieve returns credentials that have not expired, or an error whose text may be shown.
func (s Settings) Retrieve(ctx context.Context, credentials aws.CredentialsProvider) (aws.Credentials, error) {
	keys, err := credentials.Retrieve(ctx)
	if err != nil {
		err = fault.Known(s.explainSTS("no AWS credentials found", err), fault.NoCredentials{})
	}
	return keys, err
}

// load returns the configuration of the clients, without hashicorp/aws-sdk-go-base, which assumes each
// role twice, may write to the process's environment, and always reads the environment's proxies.
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
	// The SDK has made its own client, which also trusts AWS_CA_BUNDLE. Here, that variable is only the
	// default of custom_ca_bundle.
	cfg.HTTPClient = client
	// The resolver was only meant for the clients within the chain. With it, other clients would ignore
	// AWS_ENDPOINT_URL_* of their service.
	cfg.EndpointResolverWithOptions = nil //nolint:staticcheck // see options
	cfg.APIOptions = nil                  // limitAnswers is removed, because states are longer than answers of the chain
	if s.ownCredentials() == nil {
		if cfg, err = s.withoutOurSecrets(cfg); err != nil {
			return aws.Config{}, err
		}
	}
	return s.assume(cfg), nil
}

func (s Settings) options(client *awshttp.BuildableClient) ([]func(*awsconfig.LoadOptions) error, error) {
	// The clients of the chain are copies of this client, whose connections nobody can close. They send
	// few requests, so they keep no connections.
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
		// No other option applies to the STS clients that profiles with roles use.
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

// chainResolver sends the STS clients that the SDK makes for profiles with roles to the configured
// endpoint. If the environment must not choose servers, these clients, and the ones that sign in
// for a profile, use AWS's own endpoints.
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

// ownEndpoint returns AWS's own endpoint for a service of the SDK's chain. For other services it
// returns an error, upon which the SDK chooses the endpoint.
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

// Transport returns a new transport with the proxies and the trusted authorities of the settings.
func (s Settings) Transport() (*http.Transport, error) {
	s.Exposed = nil
	client, err := s.httpClient()
	if err != nil {
		return nil, err
	}
	return client.GetTransport(), nil
}

// httpClient returns a new client with the proxies and the trusted authorities of the settings.
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
			return nil, fmt.Errorf("custom_ca_bundle: %s holds no certificate in PEM format; the bundle has those of the authorities to trust", path)
		}
	}
	proxies := httpproxy.Config{HTTPProxy: s.httpProxy, HTTPSProxy: s.httpsProxy, NoProxy: s.noProxy}
	find := proxies.ProxyFunc()
	return awshttp.NewBuildableClient().WithTimeout(s.Timeout).WithTransportOptions(func(t *http.Transport) {
		t.TLSClientConfig = trust.Config(s.World, tlsConfig)
		t.Proxy = func(req *http.Request) (*url.URL, error) { // this function sees each request of each client
			if service := awsmiddleware.GetServiceID(req.Context()); service != imds.ServiceID { // the metadata service is near, and has no TLS
				s.Exposed.Note(service, req.URL)
			}
			return find(req.URL)
		}
	}), nil
}

// maxAnswer is the largest answer, in bytes. Answers of KMS and STS have a few kilobytes.
const maxAnswer = 1 << 20

// limitedClient reads answers to their end at once, because the SDK closes the body of a request as
// soon as the answer begins, and net/http may then close the connection. The body of an answer of more
// than maxAnswer bytes, of which the SDK would use the beginning, returns an error.
type limitedClient struct{ *http.Client }

// limited returns the SDK's own client, with a transport whose connections can be
// closed.
func limited(client *awshttp.BuildableClient) (limitedClient, error) {
	own, ok := client.Freeze().(*http.Client)
	if !ok {
		return limitedClient{}, errors.New("the SDK of AWS has a client whose connections cannot be closed")
	}
	own.Transport = client.GetTransport()
	return limitedClient{own}, nil
}

var errLong = errors.New("the answer is longer than any of AWS")

func (c limitedClient) Do(r *http.Request) (*http.Response, error) {
	response, err := c.Client.Do(r) //nolint:gosec // a request of the SDK, as without this client
	if err != nil || response.Body == nil {
		return response, err
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
	case r.Context().Err() != nil: // net/http may take bytes for an answer that arrive while it closes the connection
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

// limitAnswers limits the answers to the clients of the SDK's own chain (instances, containers,
// SSO and STS), as limitedClient does for others. With a bundle of certificates, the SDK does not
// accept another client there.
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

// limitedBody is a body that returns errLong if it has more than left bytes.
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

// failedBody is the body of an answer that could not be read.
type failedBody struct{ err error }

func (b failedBody) Read([]byte) (int, error) { return 0, b.err }

// checkAccount returns an error if the settings do not allow the account of the credentials. It looks
// up the account only if they restrict it.
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
		return fmt.Errorf("the AWS credentials are for the account %q, which allowed_account_ids does not list", account)
	case slices.Contains(forbidden, account):
		return fmt.Errorf("the AWS credentials are for the account %q, which forbidden_account_ids lists; use those of another one", account)
	}
	return nil
}

// Package awsauth configures access to AWS: the arguments that everything on
// AWS has in common, and the configuration of the vendor's clients that follows
// from them. Names, defaults and variables are those of OpenTofu:
// opentofu/internal/backend/remote-state/s3.
package awsauth

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/sts/types"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

const (
	defaultAttempts = 5
	maxAttempts     = 1000

	// The limits of OpenTofu and of STS:
	// https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html
	minSession = 15 * time.Minute
	maxSession = 12 * time.Hour
)

// Settings say how to reach AWS, and with which identity. A zero value leaves a
// setting to the SDK, which looks into the shared files, and into the
// environment if that may be read.
type Settings struct {
	Region  string
	Timeout time.Duration // of one attempt; not that of reading a long answer
	MaxWait time.Duration // between attempts; 0 leaves it to the SDK

	World        world.World // in which the SDK finds who asks
	OwnEndpoints bool        // it finds no endpoints there

	STSEndpoint string // "" leaves it to the SDK

	values  attr.Values // the rest, and what the following are made of
	command error       // why no program of a profile may run, nil if it may

	attempts                       int
	retryMode                      aws.RetryMode
	httpProxy, httpsProxy, noProxy string
	profile                        string
	configFiles, credentialsFiles  []string
	role                           *stscreds.AssumeRoleOptions // without a client
	web                            *webIdentity
	imds                           imds.ClientEnableState
	imdsMode                       imds.EndpointModeState
}

// Unverified reports whether any certificate is accepted.
func (s Settings) Unverified() bool { return s.values.Bool("insecure") }

// webIdentity is a role to assume with a token from elsewhere.
type webIdentity struct {
	role             *stscreds.AssumeRoleOptions
	token, tokenFile string
	from             string // the variable that names the file, "" if the settings do
}

// Parse reads what a block with [CredentialAttrs] and [NetworkAttrs] says, for
// a region.
func Parse(v attr.Values, region string) (Settings, error) {
	s := Settings{
		Region: region, Timeout: requestTimeout, World: world.For(v.Environment() != nil, false),
		OwnEndpoints: v.Environment() == nil || v.Hands(), // what the SDK finds in the environment by itself chooses none
		values:       v, profile: v.String("profile"),
		command:     v.LeadsToCommand("profile", "shared_config_files", "shared_credentials_files"),
		configFiles: v.Strings("shared_config_files"), credentialsFiles: v.Strings("shared_credentials_files"),
		httpProxy: v.String("http_proxy"), httpsProxy: v.String("https_proxy"), noProxy: v.String("no_proxy"),
	}
	for _, name := range []string{"shared_config_files", "shared_credentials_files"} {
		if slices.ContainsFunc(v.Strings(name), recognize.IsContent) { // which the SDK takes for a file that is not there
			return s, v.Errorf(name, "the path of a file is required, and this is the content of one; write it to a file, and give its path")
		}
	}
	if endpoints, ok := v.Block("endpoints"); ok {
		s.STSEndpoint = WithScheme(endpoints.String("sts"))
	}
	for _, parse := range []func(attr.Values) error{s.parseCredentials, s.parseRetries, s.parseProxies, s.parseIMDS} {
		if err := parse(v); err != nil {
			return s, err
		}
	}
	return s, nil
}

// The shared files of the user.
const (
	homeConfig      = "~/.aws/config"
	homeCredentials = "~/.aws/credentials"
)

// handsKeys reports whether the code gives what the clients sign in with. They then take
// nothing from the environment, nor from files that the code does not name.
func handsKeys(v attr.Values) bool {
	return v.Hands("secret_key", "token", "assume_role_with_web_identity.web_identity_token")
}

var keyID = lazyregexp.New(`^A[KS]IA[A-Z0-9]{12,}$`)

func (s *Settings) parseCredentials(v attr.Values) (err error) {
	switch {
	case keyID.MatchString(v.String("secret_key")):
		return v.Errorf("secret_key", "this is the ID of a key; access_key and secret_key are exchanged")
	case keyID.MatchString(v.String("access_key")) && strings.HasPrefix(v.String("access_key"), "ASIA") && !v.Has("token"):
		return v.Errorf("access_key", "a key whose ID begins with ASIA is temporary, and requires its session token, as token")
	}
	if block, ok := v.Block("assume_role"); ok {
		if s.role, err = parseRole(block); err != nil {
			return err
		}
		s.role.ExternalID, s.role.TransitiveTagKeys = optional(block.String("external_id")), block.Strings("transitive_tag_keys")
		for k, v := range block.StringMap("tags") {
			s.role.Tags = append(s.role.Tags, types.Tag{Key: aws.String(k), Value: aws.String(v)})
		}
	}
	if block, ok := v.Block("assume_role_with_web_identity"); ok {
		s.web = &webIdentity{token: block.String("web_identity_token"), tokenFile: block.String("web_identity_token_file"),
			from: block.Variable("web_identity_token_file")}
		if s.web.role, err = parseRole(block); err != nil {
			return err
		}
		if s.web.token == "" && s.web.tokenFile == "" {
			return block.Errorf("", "web_identity_token or web_identity_token_file is required (or the environment "+
				"variable AWS_WEB_IDENTITY_TOKEN, AWS_WEB_IDENTITY_TOKEN_FILE)")
		}
	}
	return nil
}

func parseRole(v attr.Values) (*stscreds.AssumeRoleOptions, error) {
	r := &stscreds.AssumeRoleOptions{
		RoleARN: v.String("role_arn"), RoleSessionName: v.String("session_name"), Policy: optional(v.String("policy")),
	}
	if !strings.HasPrefix(r.RoleARN, "arn:") {
		return nil, v.Errorf("role_arn", "the ARN of a role is required, such as arn:aws:iam::123456789012:role/reader")
	}
	if text := v.String("duration"); text != "" {
		var err error
		if r.Duration, err = time.ParseDuration(text); err != nil || r.Duration < minSession || r.Duration > maxSession {
			return nil, v.Errorf("duration", "a duration from 15m to 12h is required")
		}
	}
	for _, text := range v.Strings("policy_arns") {
		if a, err := arn.Parse(text); err != nil || !strings.HasPrefix(a.Resource, "policy/") {
			return nil, v.Errorf("policy_arns", "ARNs of IAM policies are required, such as arn:aws:iam::aws:policy/ReadOnlyAccess")
		}
		r.PolicyARNs = append(r.PolicyARNs, types.PolicyDescriptorType{Arn: &text})
	}
	return r, nil
}

func (s *Settings) parseRetries(v attr.Values) error {
	n, err := v.Int("max_retries", 0, maxAttempts)
	if err != nil {
		return err
	}
	// In OpenTofu, 0 means "not set". The SDK counts attempts, not retries.
	if s.attempts = int(n); n == 0 {
		s.attempts = defaultAttempts
	}
	if text := v.String("retry_mode"); text != "" {
		if s.retryMode, err = aws.ParseRetryMode(text); err != nil {
			return v.Errorf("retry_mode", "standard or adaptive is required")
		}
	}
	return nil
}

// parseProxies checks the URLs, because the library that uses them repeats a
// wrong one in its error, password included.
func (s *Settings) parseProxies(v attr.Values) error {
	for name, text := range map[string]string{"http_proxy": s.httpProxy, "https_proxy": s.httpsProxy} {
		if text != "" && checkProxy(text) != nil {
			return v.Errorf(name, "this must be a URL such as http://proxy.example.com:3128")
		}
	}
	// Without an HTTPS proxy of its own, http_proxy serves HTTPS as well, as
	// in OpenTofu. An empty https_proxy is one: none.
	if s.httpProxy != "" && !v.Has("https_proxy") {
		s.httpsProxy = s.httpProxy
	}
	return nil
}

// FillProxies completes what v says of proxies from the environment, for blocks
// that it does not fill otherwise: proxies are those of the machine.
func (s *Settings) FillProxies(v attr.Values, lookup attr.LookupEnv) error {
	fill := func(to *string, names ...string) error {
		*to, _ = lookup.Get(names...)
		if *to != "" && checkProxy(*to) != nil {
			return fmt.Errorf("the environment variable %s must be a URL such as http://proxy.example.com:3128", names[0])
		}
		return nil
	}
	if !v.Has("no_proxy") {
		s.noProxy, _ = lookup.Get("NO_PROXY", "no_proxy")
	}
	if v.Has("http_proxy") {
		return nil
	}
	if !v.Has("https_proxy") {
		if err := fill(&s.httpsProxy, "HTTPS_PROXY", "https_proxy"); err != nil {
			return err
		}
	}
	return fill(&s.httpProxy, "HTTP_PROXY", "http_proxy")
}

func checkProxy(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" {
		u, err = url.Parse("http://" + text)
	}
	if err != nil || u.Hostname() == "" {
		return errors.New("not the URL of a proxy, such as http://proxy.example.com:3128")
	}
	return nil
}

func isHTTP(address string) bool {
	return strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "https://")
}

// parseIMDS reads the switches of the EC2 metadata service. OpenTofu 1.12 has
// skip_metadata_api_check the wrong way round (aws_kms/config.go), unlike its
// own S3 backend; here it means what it says.
func (s *Settings) parseIMDS(v attr.Values) error {
	if v.Has("skip_metadata_api_check") {
		s.imds = imds.ClientEnabled
		if v.Bool("skip_metadata_api_check") {
			s.imds = imds.ClientDisabled
		}
	}
	if text := v.String("ec2_metadata_service_endpoint_mode"); text != "" && s.imdsMode.SetFromString(text) != nil {
		return v.Errorf("ec2_metadata_service_endpoint_mode", "IPv4 or IPv6 is required")
	}
	if text := v.String("ec2_metadata_service_endpoint"); text != "" && !isHTTP(text) {
		return v.Errorf("ec2_metadata_service_endpoint", "an address that begins with http:// or https:// is required")
	}
	return nil
}

// WithScheme makes a URL of a host, as OpenTofu does.
func WithScheme(endpoint string) string {
	if endpoint == "" || strings.Contains(endpoint, "://") {
		return endpoint
	}
	return "https://" + endpoint
}

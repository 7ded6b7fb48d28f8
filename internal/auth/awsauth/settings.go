// Package awsauth configures access to AWS. It contains the arguments that all AWS key providers and sources
// share, and configures the AWS clients. Names, defaults and environment variables are the same as in
// OpenTofu (opentofu/internal/backend/remote-state/s3).
package awsauth

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/sts/types"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

const (
	defaultAttempts = 5
	maxAttempts     = 1000

	// The limits are OpenTofu's and those of STS; see
	// https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html.
	minSession = 15 * time.Minute
	maxSession = 12 * time.Hour
)

// Settings holds settings and credentials for AWS clients. The SDK looks up settings that are zero in the
// shared files, and also in the environment if it may be read.
type Settings struct {
	Region  string
	Timeout time.Duration // the time limit for one attempt, excluding the time to read a large response
	MaxWait time.Duration // the maximum delay between attempts; 0 for the SDK's default

	World        world.World // where the SDK may look for credentials
	OwnEndpoints bool        // whether the environment must not choose endpoints

	STSEndpoint string // the URL of STS; empty for the SDK's default

	Exposed *netfail.Exposed // the services that were called without encryption

	values  attr.Values // the values in the block
	command error       // why a profile's program must not run; nil if it may

	attempts                       int
	retryMode                      aws.RetryMode
	httpProxy, httpsProxy, noProxy string
	profile                        string
	configFiles, credentialsFiles  []string
	role                           *stscreds.AssumeRoleOptions // does not set Client
	web                            *webIdentity
	imds                           imds.ClientEnableState
	imdsMode                       imds.EndpointModeState
}

// Unverified reports whether any server certificate is accepted.
func (s Settings) Unverified() bool { return s.values.Bool("insecure") }

// webIdentity is a role that is assumed with a token from another identity provider.
type webIdentity struct {
	role             *stscreds.AssumeRoleOptions
	token, tokenFile string
	from             string // the environment variable that names the file; empty if the settings do
}

// Parse returns the settings in a block with the attributes from [CredentialAttrs] and [NetworkAttrs], for
// the given region.
func Parse(v attr.Values, region string) (Settings, error) {
	s := Settings{
		Region: region, Timeout: requestTimeout, Exposed: new(netfail.Exposed), World: world.For(v.Environment(), false),
		OwnEndpoints: v.Environment() == nil || v.Hands(), // variables that only the SDK reads must not choose endpoints
		values:       v, profile: v.String("profile"),
		command:     v.LeadsToCommand("profile", "shared_config_files", "shared_credentials_files"),
		configFiles: v.Strings("shared_config_files"), credentialsFiles: v.Strings("shared_credentials_files"),
		httpProxy: v.String("http_proxy"), httpsProxy: v.String("https_proxy"), noProxy: v.String("no_proxy"),
	}
	if endpoints, ok := v.Block("endpoints"); ok {
		s.STSEndpoint = recognize.WithScheme(endpoints.String("sts"))
	}
	// In OpenTofu, 0 means that the argument is not set. The SDK counts attempts, not retries.
	s.attempts = cmp.Or(int(v.Int("max_retries")), defaultAttempts)
	s.retryMode, _ = aws.ParseRetryMode(v.String("retry_mode"))
	// If https_proxy is not set, http_proxy applies to HTTPS as well, as in OpenTofu. An empty https_proxy
	// means no proxy.
	if s.httpProxy != "" && !v.Has("https_proxy") {
		s.httpsProxy = s.httpProxy
	}
	// In OpenTofu 1.12, the key provider inverts skip_metadata_api_check (aws_kms/config.go), but the S3
	// backend does not. This package does what the S3 backend does.
	if v.Has("skip_metadata_api_check") {
		s.imds = imds.ClientEnabled
		if v.Bool("skip_metadata_api_check") {
			s.imds = imds.ClientDisabled
		}
	}
	_ = s.imdsMode.SetFromString(v.String("ec2_metadata_service_endpoint_mode")) // ignores an empty text
	return s, s.parseCredentials(v)
}

// isPath returns false for the content of a file, which the SDK would mistake for the path of a missing file.
func isPath(text string) bool { return !recognize.IsContent(text) }

// The default paths of the user's shared files.
const (
	homeConfig      = "~/.aws/config"
	homeCredentials = "~/.aws/credentials"
)

// handsKeys reports whether the configuration sets the clients' credentials. If so, the clients read neither
// the environment nor files that the configuration does not name.
func handsKeys(v attr.Values) bool {
	return v.Hands("secret_key", "token", "assume_role_with_web_identity.web_identity_token")
}

func isSecretKey(text string) bool { return !keyID.MatchString(text) }

func isARN(text string) bool { return strings.HasPrefix(text, "arn:") }

var keyID = lazyregexp.New(`^A[KS]IA[A-Z0-9]{12,}$`)

func (s *Settings) parseCredentials(v attr.Values) error {
	if id := v.String("access_key"); keyID.MatchString(id) && strings.HasPrefix(id, "ASIA") && !v.Has("token") {
		return v.Errorf("access_key", "the key ID begins with ASIA, so the key is temporary; set the argument token to its session token")
	}
	if block, ok := v.Block("assume_role"); ok {
		s.role = parseRole(block)
		s.role.ExternalID, s.role.TransitiveTagKeys = optional(block.String("external_id")), block.Strings("transitive_tag_keys")
		for k, v := range block.StringMap("tags") {
			s.role.Tags = append(s.role.Tags, types.Tag{Key: aws.String(k), Value: aws.String(v)})
		}
	}
	if block, ok := v.Block("assume_role_with_web_identity"); ok {
		s.web = &webIdentity{role: parseRole(block), token: block.String("web_identity_token"),
			tokenFile: block.String("web_identity_token_file"), from: block.Variable("web_identity_token_file")}
		if s.web.token == "" && s.web.tokenFile == "" {
			return block.Errorf("", "web_identity_token and web_identity_token_file have no value; set one of them, or the environment "+
				"variable AWS_WEB_IDENTITY_TOKEN or AWS_WEB_IDENTITY_TOKEN_FILE")
		}
	}
	return nil
}

func parseRole(v attr.Values) *stscreds.AssumeRoleOptions {
	r := &stscreds.AssumeRoleOptions{
		RoleARN: v.String("role_arn"), RoleSessionName: v.String("session_name"), Policy: optional(v.String("policy")),
	}
	r.Duration, _ = time.ParseDuration(v.String("duration"))
	for _, text := range v.Strings("policy_arns") {
		r.PolicyARNs = append(r.PolicyARNs, types.PolicyDescriptorType{Arn: &text})
	}
	return r
}

func isSession(text string) bool {
	d, err := time.ParseDuration(text)
	return err == nil && d >= minSession && d <= maxSession
}

func isPolicy(text string) bool {
	a, err := arn.Parse(text)
	return err == nil && strings.HasPrefix(a.Resource, "policy/")
}

// FillProxies sets missing proxies in s from the environment. It does so even for blocks that otherwise must
// not use the environment, because proxies belong to the machine.
func (s *Settings) FillProxies(v attr.Values, lookup attr.LookupEnv) error {
	fill := func(to *string, names ...string) error {
		*to, _ = lookup.Get(names...)
		if !isProxy(*to) {
			return fmt.Errorf("the environment variable %s is not the URL of a proxy; write a URL like http://proxy.example.com:3128", names[0])
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

// isProxy reports whether text is a proxy URL or empty. Like the library that uses the proxy, it accepts an
// address without a scheme.
func isProxy(text string) bool {
	return web.CheckProxy(text) == nil || !strings.Contains(text, "://") && web.CheckProxy("http://"+text) == nil
}

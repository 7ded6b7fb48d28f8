package awsauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/credentials/processcreds"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/world"
)

// loadWithoutEnvironment returns the configuration for AWS clients, using only the settings and the shared
// files. The SDK's own loader always reads the environment.
//
// The SDK still reads four environment variables that no option overrides. They affect how long it waits for
// a response (AWS_ENABLE_DEFAULT_SOCKET_TIMEOUT_2026), and the runtime and trace in its headers.
func (s Settings) loadWithoutEnvironment(ctx context.Context, client aws.HTTPClient) (aws.Config, error) {
	profile, err := s.loadProfile(ctx)
	if err != nil {
		return aws.Config{}, err
	}
	dualStack, fips := profile.UseDualStackEndpoint, profile.UseFIPSEndpoint
	if s.values.Bool("use_dualstack_endpoint") {
		dualStack = aws.DualStackEndpointStateEnabled
	}
	if s.values.Bool("use_fips_endpoint") {
		fips = aws.FIPSEndpointStateEnabled
	}
	cfg := aws.Config{
		Region:           s.Region,
		HTTPClient:       client,
		RetryMaxAttempts: s.attempts,
		RetryMode:        cmp.Or(s.retryMode, profile.RetryMode),
		Logger:           logging.Nop{},
		APIOptions:       []func(*middleware.Stack) error{AnonymousClient},
		// The clients look up endpoints and their variants in these options first, then in the profile.
		ConfigSources: []any{awsconfig.LoadOptions{UseDualStackEndpoint: dualStack, UseFIPSEndpoint: fips}, profile},
	}
	if cfg.Credentials = s.ownCredentials(); cfg.Credentials == nil {
		cfg.Credentials, err = s.profileCredentials(cfg, profile)
	}
	return cfg, err
}

// AnonymousClient removes the parts of requests that reveal the environment: AWS_EXECUTION_ENV and the trace
// of a Lambda function.
func AnonymousClient(stack *middleware.Stack) error {
	for _, id := range []string{"UserAgent", "RecursionDetection"} {
		if _, ok := stack.Build.Get(id); ok {
			if _, err := stack.Build.Remove(id); err != nil {
				return err
			}
		}
	}
	return nil
}

// loadProfile reads the profile from the shared files. A missing default profile is treated as empty. If the
// configuration sets keys, loadProfile reads only files that the configuration names, because files in the
// home directory could redirect signed requests to another endpoint.
func (s Settings) loadProfile(ctx context.Context) (awsconfig.SharedConfig, error) {
	keys := handsKeys(s.values)
	if keys && len(s.configFiles)+len(s.credentialsFiles) == 0 {
		return awsconfig.SharedConfig{}, nil
	}
	configFiles, credentialsFiles, err := s.sharedFiles()
	if err != nil {
		return awsconfig.SharedConfig{}, err
	}
	if !keys {
		configFiles, credentialsFiles = orHome(configFiles, homeConfig), orHome(credentialsFiles, homeCredentials)
	}
	name := cmp.Or(s.profile, "default")
	profile, err := awsconfig.LoadSharedConfigProfile(ctx, name, func(o *awsconfig.LoadSharedConfigOptions) {
		// An empty list means no files; nil would mean the SDK's defaults.
		o.ConfigFiles, o.CredentialsFiles = append([]string{}, configFiles...), append([]string{}, credentialsFiles...)
		o.Logger = logging.Nop{}
	})
	if missing, ok := errors.AsType[awsconfig.SharedConfigProfileNotExistError](err); ok && s.profile == "" && missing.Profile == name {
		return awsconfig.SharedConfig{}, nil
	}
	if err != nil {
		return awsconfig.SharedConfig{}, s.explainSettings(err)
	}
	return profile, nil
}

// orHome returns files, or the file ofHome if there are none. If the home directory is not known, it returns
// files unchanged.
func orHome(files []string, ofHome string) []string {
	if path, err := world.ExpandHome(ofHome); err == nil && len(files) == 0 {
		return []string{path}
	}
	return files
}

// profileCredentials returns the credentials in a profile. In the order of the SDK's own chain, they come
// from the source profile, the keys, a token file, a program or the instance. If the profile has a role, it
// is assumed. The function returns an error for kinds of credentials that the SDK can only set up from the
// environment.
func (s Settings) profileCredentials(cfg aws.Config, p awsconfig.SharedConfig) (aws.CredentialsProvider, error) {
	var err error
	switch {
	case p.Source != nil:
		cfg.Credentials, err = s.profileCredentials(cfg, *p.Source)
	case p.Credentials.HasKeys():
		cfg.Credentials = credentials.StaticCredentialsProvider{Value: p.Credentials}
	case p.CredentialSource == "Ec2InstanceMetadata":
		cfg.Credentials = s.instance(cfg)
	case p.CredentialSource != "":
		return nil, fmt.Errorf("the profile %q takes its credentials from the environment (credential_source), but the environment "+
			"must not be used; use access keys or a role", p.Profile)
	case p.WebIdentityTokenFile != "":
		if p.RoleARN == "" {
			return nil, fmt.Errorf("the profile %q has a web_identity_token_file but no role_arn; set role_arn", p.Profile)
		}
		web := &webIdentity{
			role: &stscreds.AssumeRoleOptions{RoleARN: p.RoleARN, RoleSessionName: p.RoleSessionName}, tokenFile: p.WebIdentityTokenFile,
		}
		return aws.NewCredentialsCache(s.webProvider(cfg, web)), nil
	case usesBrowser(p):
		return nil, fmt.Errorf("the profile %q needs the environment to sign in with a browser session, but the "+
			"environment must not be used; use access keys, a role or a credential_process", p.Profile)
	case p.CredentialProcess != "" && s.command != nil:
		return nil, fmt.Errorf("credential_process of the profile %q: %w", p.Profile, s.command)
	case p.CredentialProcess != "":
		cfg.Credentials = processcreds.NewProviderCommand(s.program(p.CredentialProcess))
	default:
		cfg.Credentials = s.instance(cfg)
	}
	if err == nil && p.RoleARN != "" {
		cfg.Credentials, err = s.profileRole(cfg, p)
	}
	if err != nil {
		return nil, err
	}
	return aws.NewCredentialsCache(cfg.Credentials), nil
}

func (s Settings) profileRole(cfg aws.Config, p awsconfig.SharedConfig) (aws.CredentialsProvider, error) {
	if p.MFASerial != "" {
		return nil, fmt.Errorf("the role of the profile %q requires a code from an MFA device (mfa_serial), but the code cannot be "+
			"entered here; use session credentials", p.Profile)
	}
	cfg.Credentials = aws.NewCredentialsCache(cfg.Credentials)
	return stscreds.NewAssumeRoleProvider(s.sts(cfg), p.RoleARN, func(o *stscreds.AssumeRoleOptions) {
		o.RoleSessionName = p.RoleSessionName
		o.ExternalID = optional(p.ExternalID)
		if p.RoleDurationSeconds != nil && *p.RoleDurationSeconds >= minSession {
			o.Duration = *p.RoleDurationSeconds
		}
	}), nil
}

// instance returns a provider for the credentials of an EC2 instance's role. It sets all options that the
// client would otherwise look up.
func (s Settings) instance(cfg aws.Config) aws.CredentialsProvider {
	o := imds.Options{
		ClientEnableState: imds.ClientEnabled, Endpoint: s.values.String("ec2_metadata_service_endpoint"), EndpointMode: s.imdsMode,
		HTTPClient: cfg.HTTPClient, Logger: cfg.Logger, APIOptions: cfg.APIOptions,
	}
	if s.imds != imds.ClientDefaultEnableState {
		o.ClientEnableState = s.imds
	}
	if o.Endpoint == "" {
		// See https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html.
		o.Endpoint = "http://169.254.169.254"
		if o.EndpointMode == imds.EndpointModeStateIPv6 {
			o.Endpoint = "http://[fd00:ec2::254]"
		}
	}
	return ec2rolecreds.New(func(r *ec2rolecreds.Options) { r.Client = imds.New(o) })
}

// program returns a builder for the command that runs a profile's credential_process. Unlike the SDK's
// command, this command does not get our secrets in its environment, and has no terminal, because nobody
// would answer there.
func (s Settings) program(command string) processcreds.NewCommandBuilderFunc {
	return func(ctx context.Context) (*exec.Cmd, error) {
		shell, flag := "sh", "-c"
		if runtime.GOOS == "windows" {
			shell, flag = "cmd.exe", "/C"
		}
		return world.Command(ctx, s.World.Environ(), shell, flag, command), nil
	}
}

// withoutOurSecrets returns cfg. If the credentials come from a profile's program, it makes s.program run
// that program, because the SDK itself would pass the whole environment to it.
func (s Settings) withoutOurSecrets(cfg aws.Config) (aws.Config, error) {
	var env awsconfig.EnvConfig
	var profile awsconfig.SharedConfig
	for _, source := range cfg.ConfigSources {
		switch found := source.(type) {
		case awsconfig.EnvConfig:
			env = found
		case awsconfig.SharedConfig:
			profile = found
		}
	}
	// The order is that of the SDK's chain: a profile in the settings, the environment, then any other
	// profile.
	if s.profile == "" && (env.Credentials.HasKeys() || env.WebIdentityTokenFilePath != "") || !runsProgram(profile) {
		return cfg, nil
	}
	var err error
	cfg.Credentials, err = s.profileCredentials(cfg, profile)
	return cfg, err
}

// runsProgram reports whether a profile's credentials come from a program. A profile may name a program after
// several other kinds of credentials, which take precedence.
func runsProgram(p awsconfig.SharedConfig) bool {
	for p.Source != nil {
		p = *p.Source
	}
	return p.CredentialProcess != "" && !p.Credentials.HasKeys() && p.CredentialSource == "" && p.WebIdentityTokenFile == "" && !usesBrowser(p)
}

// usesBrowser reports whether a profile uses a session that was started in a browser.
func usesBrowser(p awsconfig.SharedConfig) bool {
	return p.SSOSessionName+p.SSORegion+p.SSOAccountID+p.SSOStartURL+p.SSORoleName+p.LoginSession != ""
}

// EndpointOf returns the endpoint of a service that the SDK has no client for. As in the SDK, it comes from
// environment variables or the profile. The default is AWS's own endpoint, whose host name begins with the
// value of host.
func (s Settings) EndpointOf(ctx context.Context, service, host string) (string, error) {
	cfg, err := s.Load(ctx)
	if err != nil {
		return "", err
	}
	endpoint := cfg.BaseEndpoint
	for _, source := range slices.Backward(cfg.ConfigSources) { // backward, so that the first source wins
		if from, ok := source.(interface {
			GetServiceBaseEndpoint(ctx context.Context, service string) (string, bool, error)
		}); ok {
			if own, found, err := from.GetServiceBaseEndpoint(ctx, service); err == nil && found {
				endpoint = &own
			}
		}
	}
	s.SetEndpoint(ctx, cfg, service, &endpoint)
	if endpoint != nil {
		return *endpoint, nil
	}
	own, err := s.ownEndpoint(sts.ServiceID, s.Region) // AWS's own hosts in a region share a domain
	own.URI.Host = strings.Replace(own.URI.Host, "sts", host, 1)
	return own.URI.String(), err
}

// SetEndpoint sets a client's endpoint if the SDK would otherwise take it from the environment, but must not.
// Nil means AWS's own endpoint.
func (s Settings) SetEndpoint(ctx context.Context, cfg aws.Config, service string, to **string) {
	if s.World.ReadsEnvironment() && !s.OwnEndpoints {
		return
	}
	*to = nil
	for _, source := range cfg.ConfigSources {
		profile, ok := source.(awsconfig.SharedConfig)
		if !ok || aws.ToBool(profile.IgnoreConfiguredEndpoints) || profile.Profile != cmp.Or(s.profile, "default") {
			continue // AWS_PROFILE may select credentials, but not endpoints
		}
		if endpoint, found, err := profile.GetServiceBaseEndpoint(ctx, service); err == nil && found {
			*to = &endpoint
		} else if profile.BaseEndpoint != "" {
			*to = &profile.BaseEndpoint
		}
	}
}

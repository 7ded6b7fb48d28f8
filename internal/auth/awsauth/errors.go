package awsauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/answers"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
)

type failure struct {
	text  string
	cause error
}

func (f *failure) Error() string { return f.text }

// Is reports whether the cause is a context error equal to target. There is no Unwrap method, because the
// cause may quote responses from servers and output from programs.
func (f *failure) Is(target error) bool {
	return (target == context.Canceled || target == context.DeadlineExceeded) &&
		errors.Is(f.cause, target) //nolint:errorlint // it is compared by errors.Is
}

// Failure returns an error with the given text, which replaces the text of its cause.
func Failure(text string, cause error) error { return &failure{text: text, cause: cause} }

// CommonReason returns the meaning of an error code that all AWS services use, or an empty string for other
// codes. See https://docs.aws.amazon.com/kms/latest/APIReference/CommonErrors.html.
func CommonReason(code string) string {
	return answers.Find([]answers.Row{
		{Code: "ThrottlingException Throttling LimitExceededException RequestLimitExceeded TooManyRequestsException",
			Text: "too many requests, even after retries; try again later, or raise max_retries"},
		{Code: "UnrecognizedClientException InvalidClientTokenId InvalidAccessKeyId InvalidSignatureException SignatureDoesNotMatch " +
			"MissingAuthenticationToken MissingAuthenticationTokenException IncompleteSignature AuthFailure NotAuthorized",
			Text: "the credentials are not valid; check the credentials, the region and the clock"},
		{Code: "ExpiredTokenException ExpiredToken RequestExpired", Text: "the credentials have expired; log in again, or set new " +
			"credentials"},
		{Code: "AccessDenied AccessDeniedException", Text: "access is denied"},
		{Code: "RegionDisabledException OptInRequired", Text: "the region is not enabled for the account"},
	}, 0, code, "").Text
}

// explainSettings translates an error from loading the SDK's configuration.
func (s Settings) explainSettings(err error) error {
	text := "the AWS settings in the environment or in the shared files are invalid" + s.inProfile()
	if missing, ok := errors.AsType[awsconfig.SharedConfigProfileNotExistError](err); ok {
		text = fmt.Sprintf("the shared AWS files have no profile %q%s%s", missing.Profile, s.namedBy(), s.checkFiles())
	} else if broken, ok := errors.AsType[awsconfig.SharedConfigLoadError](err); ok {
		name := cmp.Or(keyfile.Shown(broken.Filename), "(its name may be a secret)")
		text = "the shared AWS file " + name + " cannot be read; check shared_config_files and shared_credentials_files"
	}
	return Failure(text, err)
}

// inProfile returns advice to check the profile, whose settings may be incomplete. It returns an empty string
// if no profile is used.
func (s Settings) inProfile() string {
	profile, _ := s.values.Environment().Get("AWS_PROFILE", "AWS_DEFAULT_PROFILE")
	if profile = cmp.Or(s.profile, profile); profile == "" {
		return ""
	}
	return fmt.Sprintf("; run aws configure list --profile %q to check whether the profile has an access key without its secret", profile)
}

// namedBy returns a clause about the environment variable that selects the profile, or an empty string if
// none does.
func (s Settings) namedBy() string {
	for _, name := range []string{"AWS_PROFILE", "AWS_DEFAULT_PROFILE"} {
		if _, set := s.values.Environment().Get(name); set && s.profile == "" {
			return " (from " + name + ")"
		}
	}
	return ""
}

// checkFiles returns advice for a profile that is missing in the shared files. The SDK treats a missing file
// as an empty one.
func (s Settings) checkFiles() string {
	defaults := slices.Concat(awsconfig.DefaultSharedConfigFiles, awsconfig.DefaultSharedCredentialsFiles)
	isMissing := func(path string) bool { return !recognize.Exists(path) && !slices.Contains(defaults, path) }
	switch {
	case slices.ContainsFunc(s.credentialsFiles, isMissing):
		return ", and shared_credentials_files names a missing file; check the path and the profile"
	case slices.ContainsFunc(s.configFiles, isMissing):
		return ", and shared_config_files names a missing file; check the path and the profile"
	}
	return "; check the profile name with aws configure list-profiles"
}

// noInstance explains why there are no credentials after the EC2 metadata service, which the SDK asks last,
// has returned an error.
func (s Settings) noInstance(err error) string {
	switch missing, set := s.halfKey(); {
	case missing != "":
		return fmt.Sprintf("the environment variable %s is set, but %s is not; set both variables", set, missing)
	case s.has("AWS_ROLE_ARN") && !s.has("AWS_WEB_IDENTITY_TOKEN_FILE"):
		return "the environment variable AWS_ROLE_ARN is set, but AWS_WEB_IDENTITY_TOKEN_FILE is not; set it, or set assume_role to assume a " +
			"role with other credentials"
	case s.imds == imds.ClientDisabled:
		return "nothing is configured, and skip_metadata_api_check disables the EC2 metadata service"
	case strings.Contains(err.Error(), "access disabled"):
		return "nothing is configured, and AWS_EC2_METADATA_DISABLED disables the EC2 metadata service"
	}
	return "nothing is configured, and the EC2 metadata service returns no credentials: " + NoAnswer(err)
}

func (s Settings) has(variable string) bool {
	_, set := s.values.Environment().Get(variable)
	return set
}

// halfKey returns the names of the missing and the set environment variable if only half of an access key is
// set. Otherwise it returns empty strings.
func (s Settings) halfKey() (missing, set string) {
	lookup := s.values.Environment()
	_, id := lookup.Get("AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY")
	_, secret := lookup.Get("AWS_SECRET_ACCESS_KEY", "AWS_SECRET_KEY")
	switch {
	case id && !secret:
		return "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"
	case secret && !id:
		return "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"
	}
	return "", ""
}

// explainSTS translates an error from getting credentials. The result is final, because another key provider
// would not help.
func (s Settings) explainSTS(what string, err error) error {
	switch {
	case s.role != nil:
		what += fmt.Sprintf(" (role %s)", s.role.RoleARN)
	case s.web != nil:
		what += fmt.Sprintf(" (role %s)", s.web.role.RoleARN)
	case s.profile != "":
		what += fmt.Sprintf(" (profile %q)", s.profile)
	}
	op, isOp := errors.AsType[*smithy.OperationError](err)
	stopped := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	instance := isOp && op.ServiceID == imds.ServiceID && !stopped
	if isOp && !instance {
		what += fmt.Sprintf(": %s %s", Code(op.ServiceID), Code(op.OperationName))
	}
	api, isAPI := errors.AsType[smithy.APIError](err)
	file, isFile := errors.AsType[*tokenFileError](err)
	switch {
	case instance:
		what += ": " + s.noInstance(err)
	case isAPI && !stopped:
		what += ": " + answers.Coded(cmp.Or(CommonReason(api.ErrorCode()), "the request failed"), Code(api.ErrorCode()))
	case isFile && !stopped:
		what += ": " + file.Error()
	case s.missingFile() != "" && !stopped:
		what += ": " + s.missingFile()
	case signedOut.MatchString(err.Error()) && !stopped:
		what += ": there is no valid session for IAM Identity Center; run aws sso login"
		if s.profile != "" {
			return Failure(what+fmt.Sprintf(" --profile %q", s.profile), err)
		}
	default:
		what += ": " + NoAnswer(err)
	}
	if s.role == nil && s.web == nil && s.profile == "" && s.values.String("access_key") == "" && !isAPI {
		what += ". Set access_key and secret_key, a profile or a role, or set the environment variables of the AWS CLI"
	}
	return Failure(what, err)
}

// signedOut matches errors from package ssocreds. SSO alone may also be part of a role name.
var signedOut = lazyregexp.New(`SSO (token|session)\b`)

// missingFile returns a text about an SDK environment variable that names a missing file, or an empty string
// if there is none.
func (s Settings) missingFile() string {
	for _, name := range []string{"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"} {
		if path, _ := s.values.Environment().Get(name); path != "" && !recognize.Exists(path) {
			return fmt.Sprintf("the environment variable %s names a missing file; correct the path", name)
		}
	}
	return ""
}

// NoAnswer returns the reason why a request got no valid response from AWS.
func NoAnswer(err error) string {
	resp, answered := errors.AsType[*smithyhttp.ResponseError](err)
	if answered && resp.Response != nil && resp.HTTPStatusCode() > 0 && !errors.Is(err, context.Canceled) && !netfail.IsTimeout(err) {
		return fmt.Sprintf("the answer does not come from AWS (HTTP status %d)", resp.HTTPStatusCode())
	}
	reason := netfail.Reason(err, "set custom_ca_bundle")
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		reason += ". The host name comes from the region or from an endpoint setting"
	}
	return reason
}

// Code escapes and shortens an error code or a service name for an error message.
func Code(code string) string { return outside.Line(code, maxCode) }

const maxCode = 64 // the maximum size of a code in a message, in bytes

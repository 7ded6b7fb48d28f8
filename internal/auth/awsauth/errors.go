package awsauth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
)

type failure struct {
	text  string
	cause error
}

func (f *failure) Error() string { return f.text }

// Is tells that somebody gave up. The cause itself stays inside: its text repeats
// what servers and programs answered.
func (f *failure) Is(target error) bool {
	return (target == context.Canceled || target == context.DeadlineExceeded) &&
		errors.Is(f.cause, target) //nolint:errorlint // it is compared by errors.Is
}

// Failure is an error with a text of its own in place of that of its cause.
func Failure(text string, cause error) error { return &failure{text: text, cause: cause} }

// CommonReason knows the codes that every service of AWS has:
// https://docs.aws.amazon.com/kms/latest/APIReference/CommonErrors.html
func CommonReason(code string) (string, bool) {
	switch code {
	case "ThrottlingException", "Throttling", "LimitExceededException", "RequestLimitExceeded", "TooManyRequestsException":
		return "too many requests, even after retries; try again later, or raise max_retries", true
	case "UnrecognizedClientException", "InvalidClientTokenId", "InvalidAccessKeyId", "InvalidSignatureException", "SignatureDoesNotMatch",
		"MissingAuthenticationToken", "MissingAuthenticationTokenException", "IncompleteSignature", "AuthFailure", "NotAuthorized":
		return "the credentials are not valid; check them, the region and the clock", true
	case "ExpiredTokenException", "ExpiredToken", "RequestExpired":
		return "the credentials have expired; log in again, or set new ones", true
	case "AccessDenied", "AccessDeniedException":
		return "access is denied", true
	case "RegionDisabledException", "OptInRequired":
		return "the region is not enabled for the account", true
	}
	return "", false
}

// explainSettings explains an error of the SDK's configuration.
func (s Settings) explainSettings(err error) error {
	text := "the AWS settings in the environment or in the shared files are not valid"
	if missing, ok := errors.AsType[awsconfig.SharedConfigProfileNotExistError](err); ok {
		text = fmt.Sprintf("the shared AWS files have no profile %q; check profile, and what aws configure list-profiles prints", missing.Profile)
	} else if broken, ok := errors.AsType[awsconfig.SharedConfigLoadError](err); ok {
		text = strings.TrimSpace("a shared AWS file cannot be read; check shared_config_files and shared_credentials_files " +
			keyfile.Shown(broken.Filename))
	}
	return Failure(text, err)
}

// explainSTS says what went wrong with credentials. The error is final: it says
// nothing about the file.
func (s Settings) explainSTS(what string, err error) error {
	if op, ok := errors.AsType[*smithy.OperationError](err); ok {
		what += fmt.Sprintf(": %s %s", Code(op.ServiceID), Code(op.OperationName))
	}
	api, isAPI := errors.AsType[smithy.APIError](err)
	file, isFile := errors.AsType[*tokenFileError](err)
	stopped := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	switch {
	case isAPI && !stopped:
		text, ok := CommonReason(api.ErrorCode())
		if !ok {
			text = "the request failed"
		}
		what += fmt.Sprintf(": %s (%s)", text, Code(api.ErrorCode()))
	case isFile && !stopped:
		what += ": web_identity_token_file: " + file.Error()
	default:
		what += ": " + NoAnswer(err)
	}
	if s.role != nil {
		what += fmt.Sprintf("; the role to assume is %s", s.role.RoleARN)
	} else if s.web != nil {
		what += fmt.Sprintf("; the role to assume is %s", s.web.role.RoleARN)
	} else if s.profile != "" {
		what += fmt.Sprintf("; the profile is %q", s.profile)
	} else if s.values.String("access_key") == "" && !isAPI {
		what += "; set access_key and secret_key, a profile or a role, or provide credentials in the environment as for the AWS CLI"
	}
	return Failure(what, err)
}

// NoAnswer says why there was no answer.
func NoAnswer(err error) string {
	resp, answered := errors.AsType[*smithyhttp.ResponseError](err)
	if answered && resp.Response != nil && resp.HTTPStatusCode() > 0 && !errors.Is(err, context.Canceled) && !netfail.IsTimeout(err) {
		return fmt.Sprintf("an answer that is not of AWS, with the HTTP status %d", resp.HTTPStatusCode())
	}
	reason := netfail.Reason(err, "set custom_ca_bundle")
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		reason += "; its name comes from the region, or from an endpoint"
	}
	return reason
}

// Code is what a service calls an error, or itself, fit to be shown.
func Code(code string) string { return outside.Line(code, maxCode) }

const maxCode = 64 // bytes

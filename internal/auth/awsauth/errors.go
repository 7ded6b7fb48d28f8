package awsauth

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// failure has a text of its own in the place of the SDK's, which repeats what
// servers and programs answered. The cause is there for errors.Is and As.
type failure struct {
	text  string
	cause error
}

func (f *failure) Error() string { return f.text }

func (f *failure) Unwrap() error { return f.cause }

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
		return "the credentials have expired", true
	case "AccessDenied", "AccessDeniedException":
		return "access is denied", true
	case "RegionDisabledException", "OptInRequired":
		return "the region is not enabled for the account", true
	}
	return "", false
}

// explainSettings puts an error of the SDK's configuration into words.
func (s Settings) explainSettings(err error) error {
	text := "the AWS settings in the environment or in the shared files are not valid"
	if missing, ok := errors.AsType[awsconfig.SharedConfigProfileNotExistError](err); ok {
		text = fmt.Sprintf("the shared AWS files have no profile %q", missing.Profile)
	} else if broken, ok := errors.AsType[awsconfig.SharedConfigLoadError](err); ok {
		text = fmt.Sprintf("the shared AWS file %s cannot be read", broken.Filename)
	}
	return &failure{text: text, cause: err}
}

// explainCredentials puts an error on the way to credentials into words. It is
// final: what the role or the token lacks says nothing of the file.
func (s Settings) explainCredentials(err error) error {
	return s.explainSTS("no AWS credentials to be had", err)
}

func (s Settings) explainAccount(err error) error {
	return s.explainSTS("the AWS account of the credentials cannot be told", err)
}

func (s Settings) explainSTS(what string, err error) error {
	if op, ok := errors.AsType[*smithy.OperationError](err); ok {
		what += fmt.Sprintf(": %s %s", Printable(op.ServiceID), Printable(op.OperationName))
	}
	api, isAPI := errors.AsType[smithy.APIError](err)
	path, isFile := errors.AsType[*fs.PathError](err)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		what += ": " + NoAnswer(err)
	case isAPI:
		text, ok := CommonReason(api.ErrorCode())
		if !ok {
			text = "the request failed"
		}
		what += fmt.Sprintf(": %s (%s)", text, Printable(api.ErrorCode()))
	case isFile:
		what += ": " + path.Error()
	default:
		what += ": " + NoAnswer(err)
	}
	if s.role != nil {
		what += fmt.Sprintf("; the role to assume is %s", s.role.arn)
	} else if s.web != nil {
		what += fmt.Sprintf("; the role to assume is %s", s.web.arn)
	} else if s.profile != "" {
		what += fmt.Sprintf("; the profile is %q", s.profile)
	} else if s.accessKey == "" && !isAPI {
		what += "; set access_key and secret_key, a profile or a role, or provide credentials in the environment as for the AWS CLI"
	}
	return &failure{text: what, cause: err}
}

// NoAnswer says why there was no answer.
func NoAnswer(err error) string {
	if errors.Is(err, context.Canceled) {
		return "the request was cancelled"
	}
	if timeout, ok := errors.AsType[net.Error](err); errors.Is(err, context.DeadlineExceeded) || ok && timeout.Timeout() {
		return "the request timed out"
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Sprintf("the host %s is not found; check region, and endpoints and proxies if there are any", Printable(dns.Name))
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the TLS certificate is not trusted; custom_ca_bundle names others to trust"
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return "the connection failed: " + errno.Error()
	}
	if resp, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && resp.Response != nil && resp.HTTPStatusCode() > 0 {
		return fmt.Sprintf("an answer that is not of AWS, with the HTTP status %d", resp.HTTPStatusCode())
	}
	return "there is no answer; check the network, and endpoints and proxies if there are any"
}

// Printable cuts what came from outside, and replaces what has no place in a
// code or a name.
func Printable(text string) string {
	const most = 64
	out := make([]byte, 0, most)
	for i := 0; i < len(text) && i < most; i++ {
		c := text[i]
		if c <= ' ' || c >= 0x7f {
			c = '?'
		}
		out = append(out, c)
	}
	return string(out)
}

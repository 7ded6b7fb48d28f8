package object

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/answers"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// Words holds the parts of error messages that differ between stores. A field is empty if the store lacks the feature.
type Words struct {
	Store, Short string // names of the store, such as "Alibaba Cloud OSS" and "OSS"

	Read, ReadVersion string // permissions, such as "s3:GetObject" and "s3:GetObjectVersion"
	List              string // the permission without which a missing object causes an access error, such as "s3:ListBucket"
	Decrypt           string // the permission for the store's encryption key, such as "kms:Decrypt"

	CustomerKey string // the attribute with the SSE-C key
	PathStyle   string // the attribute that moves the bucket name from the host to the path
	Checksum    string // the attribute that turns off request checksums, for stores that may not support them
	Unchecked   string // the attribute that turns off checksums of objects that are read
	Writes      bool   // whether the request changes the bucket
	Trust       string // advice for an unknown certificate authority, such as "set custom_ca_bundle in {credentials}"

	// Reasons maps further error codes to their meanings. It takes precedence over the codes in this package.
	Reasons map[string]string
}

var errPatience = errors.New(netfail.NotInTime)

// brokenError is the error for an object whose body was cut off. Another attempt may help.
type brokenError struct{ text string }

func (e *brokenError) Error() string { return e.text }

func (s Store) missing(why string) error {
	return &source.MissingError{Detail: s.Words.Store + " answered that " + why, CredentialsSent: s.Client.Options().Credentials != nil}
}

// Answer is the error for a failed request: the store responded without the object, or did not respond.
type Answer struct {
	Status int    // HTTP status of the response; 0 if there was none
	Code   string // the store's error code, which must not be shown
	text   string
	clash  bool // see IsInTheWay
}

func (a *Answer) Error() string { return a.text }

// IsFull reports whether the store has no space or quota left for the object.
func (a *Answer) IsFull() bool {
	return a.Status == http.StatusInsufficientStorage || slices.Contains(strings.Fields(full), a.Code)
}

// IsInTheWay reports whether the key conflicts with another object: the store has folders, and a key cannot name both
// an object and a folder.
func (a *Answer) IsInTheWay() bool { return a.clash }

// isClash reports whether an error is that of IsInTheWay. rclone has no code of its own for it.
func isClash(code, message string) bool {
	return slices.Contains(strings.Fields(inTheWay), code) ||
		code == "InvalidRequest" &&
			(strings.HasSuffix(message, " is the name of a directory") || strings.HasSuffix(message, " is the name of an object"))
}

// These are the error codes of stores that are full, and of stores that keep objects as files, so that an object's key
// cannot also be a folder.
const (
	full     = "QuotaExceeded XMinioStorageFull XMinioAdminBucketQuotaExceeded"
	inTheWay = "ObjectParentIsFile ExistingObjectIsDirectory XMinioParentIsObject XMinioObjectExistsAsDirectory"
)

// Explain translates an error from the store. The result, and the errors that it wraps, repeat no text from the store,
// except for error codes and region names in their usual form.
func (s Store) Explain(o Object, err error) error {
	var status int
	var header http.Header
	if answer, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && answer.Response != nil && answer.Response.Response != nil {
		status, header = answer.HTTPStatusCode(), answer.Response.Header
	}
	api, ok := errors.AsType[smithy.APIError](err)
	_, sent := errors.AsType[*smithyhttp.RequestSendError](err)
	switch {
	case status == 0 && !sent:
		return errors.New("could not create the request; check the credentials and the other settings")
	case status == 0:
		return &Answer{text: s.noAnswer(err)}
	case !ok:
		return &Answer{Status: status, text: s.strange(status)}
	}
	code := api.ErrorCode()
	switch {
	case code == "NoSuchKey" && status == http.StatusNotFound:
		return s.missing("the bucket has no such object (404 NoSuchKey)")
	case code == "MethodNotAllowed" && status == http.StatusMethodNotAllowed && o.Version != "" && header.Get("X-Amz-Delete-Marker") == "true":
		return s.missing("the version is a delete marker (405 MethodNotAllowed)")
	}
	message := api.ErrorMessage()
	return &Answer{status, code, s.reason(o, status, code, message, header.Get("X-Amz-Bucket-Region")), isClash(code, message)}
}

// reason returns the meaning of an error code; see
// https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
func (s Store) reason(o Object, status int, code, message, region string) string {
	text := s.Words.Reasons[code]
	if text == "" {
		text = s.known(o, status, code, message, region)
	}
	switch {
	case text != "" && !aCode.MatchString(code): // the status alone has a meaning
		return s.Words.Store + ": " + answers.Coded(text, fmt.Sprintf("HTTP status %d", status))
	case text != "":
		return s.Words.Store + ": " + answers.Coded(text, fmt.Sprintf("%d %s", status, code))
	case status/100 == 3:
		return s.Words.Store + ": " + answers.Coded(s.elsewhere(region), fmt.Sprintf("HTTP status %d", status))
	case code == strings.ReplaceAll(http.StatusText(status), " ", ""): // the SDK's substitute for a missing code
		return s.strange(status)
	case code != "UnknownError" && aCode.MatchString(code): // another vendor's code, not the SDK's substitute
		return fmt.Sprintf("%s: the request failed (%d %s)", s.Words.Store, status, code)
	}
	return fmt.Sprintf("%s: the request failed with HTTP status %d", s.Words.Store, status)
}

func (s Store) known(o Object, status int, code, message, region string) string {
	isKMS := s.Words.Decrypt != "" && len(code) < 50 && kmsCode.MatchString(code)
	return answers.Find([]answers.Row{
		{Unless: !isClash(code, message), Text: "the key conflicts with another object: on this store, an object and a folder cannot have the " +
			"same name; choose another key"},
		{Code: "NoSuchBucket", Text: fmt.Sprintf("there is no bucket %q; check its name, the account of the credentials, and the "+
			"endpoint", o.Bucket)},
		{Code: "InvalidBucketName", Text: "the name of the bucket is not valid; correct the name"},
		{Code: "NoSuchVersion", Text: "the object has no such version; check the ID of the version"},
		{Code: "InvalidArgument", Unless: o.Version == "", Text: "the object has no such version; check the ID of the version"},
		{Code: "InvalidArgument", Text: s.refused("the request is refused")},
		{Code: "InvalidRequest", Unless: s.Words.Writes && o.CustomerKey == nil, Text: s.invalid(o)},
		{Code: "InvalidRequest", Text: s.refused("the request is refused")},
		{Code: "XAmzContentSHA256Mismatch BadDigest", Text: s.refused("the store did not receive the bytes that were sent")},
		{Status: "501", Text: s.unsupported()},
		{Code: full, Text: noRoom},
		{Status: "507", Text: noRoom},
		{Code: "EntityTooLarge", Text: tooLarge},
		{Status: "413", Text: tooLarge},
		{Code: "MethodNotAllowed", Unless: s.Words.Writes, Text: "the store does not allow reading this object; check the key and the endpoint"},
		{Code: "MethodNotAllowed", Text: "this address does not accept writes; check the proxy settings, and that the endpoint is not a " +
			"website endpoint"},
		{Code: "InvalidObjectState", Text: "the object is archived; restore the object before you read it"},
		{Code: "PreconditionFailed", Text: "the object was changed after it was read, or it already exists"},
		{Code: "PermanentRedirect TemporaryRedirect Redirect IllegalLocationConstraintException InvalidRegion " +
			"AuthorizationHeaderMalformed AuthorizationQueryParametersError", Text: s.elsewhere(region)},
		{Code: "AccessDenied", Text: s.denied(o, message)},
		{Code: "InvalidAccessKeyId SignatureDoesNotMatch InvalidToken InvalidSecurity TokenRefreshRequired AccessKeyDisabled",
			Text: "the credentials are not valid; check them in {credentials}"},
		{Code: "ExpiredToken RequestExpired", Text: "the credentials have expired; log in again, or set new credentials"},
		{Code: "RequestTimeTooSkewed", Text: "the clock of this machine differs too much from the store's; correct the clock"},
		{Code: "AllAccessDisabled AccountProblem NotSignedUp InvalidPayer", Text: "the account or the bucket is closed"},
		{Code: "SlowDown Throttling ThrottlingException RequestLimitExceeded TooManyRequests TooManyRequestsException " +
			"BandwidthLimitExceeded", Text: "too many requests, even after retries; try again later"},
		{Code: "InternalError ServiceUnavailable RequestTimeout OperationAborted", Text: "the service is unavailable; try again later"},
		{Unless: !isKMS, Text: "the object's KMS key cannot be used; check that the key is enabled"},
	}, status, code, "").Text
}

const (
	noRoom   = "the store is full, or a quota is used up; free space, or raise the quota"
	tooLarge = "the object is too large for the store or a proxy in front of it; raise the size limit there"
)

// refused adds advice to text for stores that do not support checksums.
func (s Store) refused(text string) string {
	if s.Words.Checksum != "" {
		text += "; if the store supports no checksums, set " + s.Words.Checksum + " = true"
	}
	return text
}

// unsupported returns the error message for a request that the store supports only in part.
func (s Store) unsupported() string {
	const text = "the store does not support part of the request"
	if !s.Words.Writes && s.checks() {
		return text + "; if the store supports no checksums, set " + s.Words.Unchecked + " = true in {credentials}"
	}
	return s.refused(text)
}

// checks reports whether the client requests checksums of objects, and an attribute turns them off.
func (s Store) checks() bool {
	return s.Words.Unchecked != "" && s.Client.Options().ResponseChecksumValidation == aws.ResponseChecksumValidationWhenSupported
}

// damaged returns the reason why the body of an object could not be read. The SDK has no type for a wrong checksum.
func (s Store) damaged(err error) string {
	if !s.checks() || !strings.Contains(err.Error(), "checksum did not match") {
		return s.noAnswer(err)
	}
	return "the answer was damaged in transit: its checksum does not match; if the store calculates other checksums than S3, set " +
		s.Words.Unchecked + " = true in {credentials}"
}

var (
	aCode      = lazyregexp.New(`^[A-Za-z][A-Za-z0-9._-]{0,63}$`)
	kmsCode    = lazyregexp.New(`^KMS\.[A-Za-z]+$`)
	regionName = lazyregexp.New(`^[a-z0-9-]+$`)
)

func (s Store) denied(o Object, message string) string {
	w := s.Words
	if w.Decrypt != "" && strings.Contains(message, w.Decrypt) {
		return "access is denied; the credentials need " + w.Decrypt + " on the object's encryption key"
	}
	need := w.Read
	if o.Version != "" && w.ReadVersion != "" {
		need = w.ReadVersion
	}
	text := "access is denied"
	if need != "" {
		text += "; the credentials need " + need + " on this object"
	}
	if w.Decrypt != "" {
		text += ", and " + w.Decrypt + " if it is encrypted with a KMS key"
	}
	switch {
	case w.List != "" && o.CustomerKey != nil:
		text += fmt.Sprintf(". %s gives the same answer if %s is wrong and, without %s, if the object does not "+
			"exist", w.Store, w.CustomerKey, w.List)
	case w.List != "":
		text += fmt.Sprintf(". Without %s, %s gives the same answer for an object that does not exist", w.List, w.Store)
	case o.CustomerKey != nil:
		text += ". Also check the argument " + w.CustomerKey
	}
	return text
}

func (s Store) invalid(o Object) string {
	const refused = "the request is refused"
	switch name := s.Words.CustomerKey; {
	case name == "":
		return refused
	case o.CustomerKey == nil:
		return refused + "; if the object is encrypted with your own key (SSE-C), set " + name + " in {credentials}"
	default:
		return refused + ", because the object is not encrypted with this " + name + "; correct the key, or remove it"
	}
}

// elsewhere returns the error message for a bucket that is not where the request was sent.
func (s Store) elsewhere(region string) string {
	own := s.Client.Options().Region
	if len(region) >= 40 || !regionName.MatchString(region) || region == own {
		return fmt.Sprintf("the bucket is not in the region %s; check the region and the endpoint", own)
	}
	return fmt.Sprintf("the bucket is in the region %s, not in %s; correct the region", region, own)
}

// strange returns the error message for a response that does not come from a store.
func (s Store) strange(status int) string {
	return fmt.Sprintf("the answer does not come from %s (HTTP status %d); check the endpoint and the proxy settings", s.Words.Store, status)
}

// isTwice reports whether the host starts with the same labels twice.
func isTwice(host string) bool {
	for i, c := range host {
		if c == '.' && strings.HasPrefix(host[i+1:], host[:i+1]) {
			return true
		}
	}
	return false
}

// noAnswer returns the reason why a request got no response.
func (s Store) noAnswer(err error) string {
	text := web.Reason(err, s.Words.Trust)
	if lookup, ok := errors.AsType[*net.DNSError](err); ok && isTwice(lookup.Name) {
		return text + ". The endpoint already contains the name of the bucket; remove that name from the endpoint"
	} else if ok {
		text += ". The name of the host comes from the region or the endpoint"
		if o := s.Client.Options(); s.Words.PathStyle != "" && o.BaseEndpoint != nil && !o.UsePathStyle {
			text += ", with the bucket before it. If the store expects the bucket in the path (MinIO does), set " + s.Words.PathStyle + " = true"
		}
	}
	return text
}

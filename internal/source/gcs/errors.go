package gcs

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	nethttp "net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// ownError is in our own words, and so safe to show. Errors of net/http are
// not: some quote what the server sent.
type ownError struct {
	error
	final bool // another try would give the same
}

func (e ownError) Unwrap() error { return e.error }

func final(format string, args ...any) error { return ownError{fmt.Errorf(format, args...), true} }
func again(format string, args ...any) error { return ownError{fmt.Errorf(format, args...), false} }

func isFinal(err error) bool {
	if own, ok := errors.AsType[ownError](err); ok {
		return own.final
	}
	if _, missing := source.IsMissing(err); missing {
		return true
	}
	return isTLS(err)
}

func isTLS(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return errors.Is(err, nethttp.ErrSchemeMismatch) ||
		ok && (op.Op == "remote error" || op.Op == "local error") // an alert, such as "bad certificate"
}

// explain makes an error for people: what happened, and how often.
func (x *exchange) explain(ctx context.Context, err error) error {
	if missing, ok := source.IsMissing(err); ok {
		return missing
	}
	tries := ""
	if x.tries > 1 {
		tries = fmt.Sprintf(" (after %d tries)", x.tries)
	}
	return fmt.Errorf("%w%s", x.reason(ctx, err), tries)
}

func (x *exchange) reason(ctx context.Context, err error) error {
	var (
		own, isOwn        = errors.AsType[ownError](err)
		network, isOp     = errors.AsType[*net.OpError](err)
		lookup, isDNS     = errors.AsType[*net.DNSError](err)
		slow, canBeSlow   = errors.AsType[net.Error](err)
		invalid, isTLSErr = errors.AsType[*tls.CertificateVerificationError](err)
		_, isPlain        = errors.AsType[tls.RecordHeaderError](err)
	)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("the read was cancelled: %w", context.Cause(ctx))
	case isOwn:
		return own.error
	case isTLSErr:
		return errors.New("the certificate of the service is not trusted: " + printable(invalid.Err.Error()))
	case isPlain, errors.Is(err, nethttp.ErrSchemeMismatch):
		return errors.New("the service does not speak https at this port; check storage_custom_endpoint in the gcs block of credentials")
	case isDNS:
		return errors.New("the host of the service cannot be found: " + printable(lookup.Err))
	case canBeSlow && slow.Timeout():
		return fmt.Errorf("there was no complete answer within %s", x.patience.try)
	case isOp:
		return errors.New("the service cannot be reached: " + printable(network.Err.Error()))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the connection broke off before the answer was complete")
	default:
		return errors.New("the connection failed, or the answer is not valid HTTP")
	}
}

const maxRefusal = 64 << 10 // bytes of an answer that is an error

// complaint is what Cloud Storage writes about a request that failed. It is
// compared, and never shown.
type complaint struct {
	reason  string // such as "notFound"; "" where there is only text
	message string
}

// readComplaint reads either form: a request for the contents of an object is
// mostly answered with one line of text, all others with JSON.
// https://github.com/firebase/firebase-tools/pull/3647 shows both as they came.
// https://cloud.google.com/storage/docs/json_api/v1/status-codes
func readComplaint(body []byte) complaint {
	var answer struct {
		Error struct {
			Message string `json:"message"`
			Errors  []struct {
				Reason string `json:"reason"`
			} `json:"errors"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return complaint{message: strings.TrimSpace(string(body))}
	}
	c := complaint{message: answer.Error.Message}
	if len(answer.Error.Errors) > 0 {
		c.reason = answer.Error.Errors[0].Reason
	}
	return c
}

func (x *exchange) complaint(resp *nethttp.Response) (complaint, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	if err != nil {
		return complaint{}, err
	}
	return readComplaint(body), nil
}

// isNoObject reports whether the complaint is that there is no such object.
// Buckets that are missing get the same status.
func (c complaint) isNoObject(bucket, object string) bool {
	rest, ok := strings.CutPrefix(c.message, "No such object: "+bucket+"/"+object)
	return ok && (rest == "" || rest[0] == '#') && (c.reason == "" || c.reason == "notFound") // a generation may follow
}

// notFound says what a 404 is about: only that there is no object shows that
// there is no state.
func (x *exchange) notFound(resp *nethttp.Response) error {
	c, err := x.complaint(resp)
	switch {
	case err != nil:
		return err
	case c.isNoObject(x.bucket, x.object) && x.generation != "":
		return final("there is no such generation of the object, or no object at all (404 Not Found); check generation")
	case c.isNoObject(x.bucket, x.object):
		return &source.MissingError{Detail: "Cloud Storage has no such object (404 Not Found)", CredentialsSent: true}
	case strings.TrimSuffix(c.message, ".") == "The specified bucket does not exist":
		return final("the bucket does not exist (404 Not Found); check bucket")
	}
	return final("the service answered 404 Not Found, but not that there is no such object; check that the bucket exists, and storage_custom_endpoint in the gcs block of credentials")
}

// refusal says what an unwelcome status means.
func (x *exchange) refusal(resp *nethttp.Response) error {
	c, err := x.complaint(resp)
	if err != nil && !isTransient(resp.StatusCode) {
		return err
	}
	if words := c.explain(); words != "" {
		return final("%s (%s)", words, status(resp.StatusCode))
	}
	switch code := resp.StatusCode; {
	case code == nethttp.StatusUnauthorized:
		return final("Cloud Storage does not accept the access token (%s); it may have expired, or the credentials are for something else", status(code))
	case code == nethttp.StatusForbidden:
		return final("Cloud Storage does not allow to read the object (%s); grant storage.objects.get on the bucket, or on the object, to who reads. "+
			"An object that does not exist is answered in the same way to those who lack storage.objects.list", status(code))
	case code >= 300 && code < 400:
		return final("the service redirects to another place (%s), which Cloud Storage does not do; nothing was sent there", status(code))
	case code == nethttp.StatusTooManyRequests:
		return final("Cloud Storage is asked too often (%s); try again later", status(code))
	default:
		return final("the service answered %s", status(code))
	}
}

// explain puts into our words what the service says about encryption keys,
// quotas and policies; "" when it is something else.
func (c complaint) explain() string {
	for _, known := range []struct{ reason, text, words string }{
		{"resourceIsEncryptedWithCustomerEncryptionKey", "The target object is encrypted by a customer-supplied encryption key", "the object is encrypted with a customer-supplied key; set encryption_key in the gcs block of credentials"},
		{"resourceNotEncryptedWithCustomerEncryptionKey", "The target object is not encrypted by a customer-supplied encryption key", "the object is not encrypted with a customer-supplied key; leave encryption_key out of the gcs block of credentials"},
		{"customerEncryptionKeyIsIncorrect", "The provided encryption key is incorrect", "encryption_key is not the key that the object is encrypted with"},
		{"cloudKmsDisabledKey", "Cloud KMS key is disabled", "the key of Cloud KMS that the object is encrypted with is disabled or destroyed"},
		{"cloudKmsDecryptionKeyNotFound", "Cloud KMS decryption key not found", "the key of Cloud KMS that the object is encrypted with is not there any more"},
		{"", "Permission denied on Cloud KMS key", "Cloud Storage may not use the key of Cloud KMS that the object is encrypted with; its service agent needs roles/cloudkms.cryptoKeyEncrypterDecrypter on it"},
		{"userProjectMissing", "Bucket is a requester pays bucket but no user project provided", "whoever reads from this bucket pays; set " + quotaVar + " to the project that does, or quota_project_id in the credentials"},
		{"accountDisabled", "", "the billing account of the project is closed"},
		{"userProjectAccountProblem", "", "there is a problem with the billing account of the project that pays"},
		{"", "vpcServiceControlsUniqueIdentifier", "a perimeter of VPC Service Controls forbids to read the object from here"},
		{"rateLimitExceeded", "", "Cloud Storage is asked too often; try again later"},
		{"userRateLimitExceeded", "", "Cloud Storage is asked too often; try again later"},
		{"quotaExceeded", "", "a quota of the project is used up; try again later"},
	} {
		if known.reason != "" && c.reason == known.reason || known.text != "" && strings.Contains(c.message, known.text) {
			return known.words
		}
	}
	return ""
}

// printable is text from outside, fit to be shown.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
	const most = 300
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return s
}

// status is in our words too: a server may put anything into its own.
func status(code int) string {
	if text := nethttp.StatusText(code); text != "" {
		return strconv.Itoa(code) + " " + text
	}
	return strconv.Itoa(code)
}

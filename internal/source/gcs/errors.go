package gcs

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/answers"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

const maxRefusal = 64 << 10 // size limit for the part of an error response that is read, in bytes

// complaint is Cloud Storage's response to a failed request. Its text is compared with known messages, but never
// shown.
type complaint struct {
	reason  string // such as "notFound"; "" if there is only text
	message string
}

// readComplaint parses the body of an error response. It is usually one line of text if the request was for
// an object's content, and JSON otherwise. https://github.com/firebase/firebase-tools/pull/3647 shows
// examples of both.
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

// Object names the object of a request.
type Object struct {
	Bucket, Name string
	Generation   string // "" means the live generation
}

// ErrNoGeneration means that an object does not have the requested generation.
var ErrNoGeneration = errors.New("the object has no such generation, or does not exist (404 Not Found); check the argument generation")

// Refusal is the error for an unsuccessful response from Cloud Storage. If the object is missing, the error is a
// [source.MissingError] instead.
type Refusal struct {
	Status int
	err    error
}

func (r *Refusal) Error() string { return r.err.Error() }

// Unwrap returns the reason.
func (r *Refusal) Unwrap() error { return r.err }

// Explain returns the error for an unsuccessful response. The argument does names the failed action, such as "reading
// the object", and right names the permission that the account needs for it. Explain returns a [source.MissingError]
// only if the object is missing, and not if the bucket is.
func (o Object) Explain(resp *http.Response, does, right string) error {
	c, err := complaintOf(resp)
	if err != nil && resp.StatusCode < 500 { // the body cannot be read; another attempt may succeed
		return err
	}
	if resp.StatusCode == http.StatusNotFound {
		err = o.notFound(c)
	} else {
		err = c.refusal(resp.StatusCode, does, right)
	}
	if _, missing := source.IsMissing(err); missing {
		return err
	}
	return web.Final("%w", &Refusal{resp.StatusCode, err})
}

func complaintOf(resp *http.Response) (complaint, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	if err != nil {
		return complaint{}, err
	}
	return readComplaint(body), nil
}

// isNoObject reports whether the complaint says that the object does not exist. The status alone is not
// enough, because it is the same for a missing bucket.
func (c complaint) isNoObject(bucket, object string) bool {
	rest, ok := strings.CutPrefix(c.message, "No such object: "+bucket+"/"+object)
	return ok && (rest == "" || rest[0] == '#') && (c.reason == "" || c.reason == "notFound") // # and a generation may follow
}

// notFound returns the error for a 404. Only a missing object proves that there is no state.
func (o Object) notFound(c complaint) error {
	switch {
	case c.isNoObject(o.Bucket, o.Name) && o.Generation != "":
		return ErrNoGeneration
	case c.isNoObject(o.Bucket, o.Name):
		detail := "Cloud Storage has no such object (404 Not Found)"
		if strings.HasSuffix(path.Dir(o.Name), ".tfstate") {
			detail += "; set the argument prefix to the folder, without the name of the object"
		}
		return &source.MissingError{Detail: detail, CredentialsSent: true}
	case strings.TrimSuffix(c.message, ".") == "The specified bucket does not exist":
		return errors.New("the bucket does not exist (404 Not Found); check the argument bucket")
	}
	return errors.New("the service answered 404 Not Found, but did not say that the object does not exist; check the bucket, and " +
		"storage_custom_endpoint in {credentials}")
}

// refusal returns the error for an unsuccessful status.
func (c complaint) refusal(code int, does, right string) error {
	words, status := c.explain(), web.Status(code)
	return answers.Find([]answers.Row{
		{Unless: words == "", Text: answers.Coded(words, status)},
		{Status: "401", Text: "Cloud Storage does not accept the access token (" + status + "); log in again, or create new credentials"},
		{Status: "403", Text: "Cloud Storage does not allow " + does + " (" + status + "); grant " + right},
		{Status: "3xx", Text: "the service redirects to another address " +
			"(" + status + "), but Cloud Storage never does; check storage_custom_endpoint"},
		{Status: "429", Text: "Cloud Storage gets too many requests (" + status + "); try again later"},
		{Wraps: web.Unexpected("the service", code)},
	}, code, "", "").Err()
}

// explain returns an error message for complaints about encryption keys, quotas and policies, or an empty
// string for other complaints.
func (c complaint) explain() string {
	for _, known := range []struct{ reason, text, words string }{
		{"resourceIsEncryptedWithCustomerEncryptionKey", "The target object is encrypted by a customer-supplied encryption key",
			"the object is encrypted with a customer-supplied key; set encryption_key in {credentials}"},
		{"resourceNotEncryptedWithCustomerEncryptionKey", "The target object is not encrypted by a customer-supplied encryption key",
			"the object is not encrypted with a customer-supplied key; remove encryption_key from the gcs credentials block"},
		{"customerEncryptionKeyIsIncorrect", "The provided encryption key is incorrect",
			"encryption_key is not the key that the object is encrypted with; correct the key"},
		{"cloudKmsDisabledKey", "Cloud KMS key is disabled", "the object's Cloud KMS key is disabled or destroyed; enable or restore the key"},
		{"cloudKmsDecryptionKeyNotFound", "Cloud KMS decryption key not found",
			"the object's Cloud KMS key no longer exists"},
		{"", "Permission denied on Cloud KMS key", "Cloud Storage is not allowed to use the object's Cloud KMS key; grant its service agent " +
			"roles/cloudkms.cryptoKeyEncrypterDecrypter on the key"},
		{"userProjectMissing", "Bucket is a requester pays bucket but no user project provided", "the requester pays for requests to this " +
			"bucket; set GOOGLE_CLOUD_QUOTA_PROJECT, or quota_project_id in the credentials, to the project that pays"},
		{"retentionPolicyNotMet", "retention policy", "the object cannot be replaced or deleted yet, because the bucket has a retention " +
			"policy; keep states in a bucket without a retention policy"},
		{"objectUnderActiveHold", "-Based hold", "the object cannot be replaced or deleted, because it has a hold; release the hold, and " +
			"keep states in a bucket without a default hold"},
		{"accountDisabled", "", "the billing account of the project is closed"},
		{"userProjectAccountProblem", "", "there is a problem with the billing account of the project that pays"},
		{"", "vpcServiceControlsUniqueIdentifier", "a VPC Service Controls perimeter blocks access to the object from this machine"},
		{"rateLimitExceeded", "", "Cloud Storage gets too many requests; try again later"},
		{"userRateLimitExceeded", "", "Cloud Storage gets too many requests; try again later"},
		{"quotaExceeded", "", "a quota of the project is used up; try again later"},
	} {
		if known.reason != "" && c.reason == known.reason || known.text != "" && strings.Contains(c.message, known.text) {
			return known.words
		}
	}
	return ""
}

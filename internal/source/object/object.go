// Package object reads a state from a store that supports the Amazon S3 API. A [Vendor] describes the
// differences between such stores.
//
// It only sends GetObject requests, unless [Network.Writes] is set. It does not follow redirects, because
// another server would receive signatures and keys.
package object

import (
	"cmp"
	"context"
	"crypto/md5" //nolint:gosec // the protocol asks for it
	"encoding/base64"
	"errors"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
)

// Patience limits how long reading one object may take, including retries. States have at most a few hundred
// megabytes.
const Patience = 5 * time.Minute

// maxTries limits the number of requests for an object whose body is cut off. The client itself repeats
// requests that fail earlier.
const maxTries = 3

// Object is one object in a bucket.
type Object struct {
	Bucket, Key string
	Version     string // version ID; "" means the current version
	CustomerKey []byte // SSE-C key of 32 bytes; nil if the object has none
	Range       string // the part to read, as in the HTTP header; "" means the whole object
}

// Store reads objects with a client, and explains the store's errors.
type Store struct {
	Client   *s3.Client
	Words    Words
	Patience time.Duration // limit for reading one object; 0 means [Patience]
}

// Read reads an object of at most limit bytes. It returns a [*source.MissingError] if the object is missing
// or empty, but other errors if the bucket or version is missing, or if the store refuses the request or
// cannot be reached.
func (s Store) Read(ctx context.Context, o Object, limit int64) (*source.Snapshot, error) {
	c, err := s.Get(ctx, o, limit)
	switch {
	case err != nil:
		return nil, err
	case len(c.Data) == 0: // in the backends, too, an empty object means that there is no state
		return nil, &source.MissingError{Detail: "the object is empty", Listed: true}
	}
	return &source.Snapshot{Data: c.Data, Revision: source.Revision(cmp.Or(c.Version, c.ETag))}, nil
}

// Content is the content of an object.
type Content struct {
	Data          []byte
	ETag, Version string
	Status        int    // 206 if Data is a part of the object; otherwise 200
	Part          string // the part that Data is, as in the HTTP header Content-Range
}

// Get works like [Store.Read], but it also returns empty objects, and the ETag and version of the content.
func (s Store) Get(ctx context.Context, o Object, limit int64) (*Content, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	limited, cancel := context.WithTimeoutCause(ctx, cmp.Or(s.Patience, Patience), errPatience)
	defer cancel()
	for try := 1; ; try++ {
		content, err := s.get(limited, o, limit)
		switch _, broke := errors.AsType[*brokenError](err); {
		case limited.Err() != nil: // the error, or even a response, may be a consequence of this
			return nil, context.Cause(limited)
		case err == nil:
			return content, nil
		case !broke || try == maxTries:
			return nil, err
		}
	}
}

func (s Store) get(ctx context.Context, o Object, limit int64) (*Content, error) {
	answer, err := s.Client.GetObject(ctx, o.input(), func(options *s3.Options) {
		if o.Range != "" { // the store's checksum is of the whole object
			options.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		}
	})
	if err != nil {
		return nil, s.Explain(o, err)
	}
	defer answer.Body.Close()
	// All stores send an ETag, and status 200 for a whole object.
	status, header := rawOf(answer)
	isPart := o.Range != "" && status == http.StatusPartialContent
	if status != http.StatusOK && !isPart || aws.ToString(answer.ETag) == "" {
		return nil, errors.New(s.strange(status))
	}
	version := aws.ToString(answer.VersionId)
	if version == noVersion {
		version = ""
	}
	if o.Version != "" && o.Version != noVersion && o.Version != version {
		return nil, errors.New(s.Words.Store + " returned a version that was not requested; check that the bucket keeps versions")
	}
	size := int64(-1)
	if answer.ContentLength != nil {
		size = *answer.ContentLength
	}
	data, err := web.Decode(answer.Body, header, size, limit)
	switch {
	case web.Own(err) != nil:
		return nil, web.Own(err)
	case err != nil:
		return nil, &brokenError{s.damaged(err)}
	}
	return &Content{data, *answer.ETag, version, status, header.Get("Content-Range")}, nil
}

// rawOf returns a response's status and headers, which the SDK does not export.
func rawOf(answer *s3.GetObjectOutput) (status int, header http.Header) {
	if raw, ok := middleware.GetRawResponse(answer.ResultMetadata).(*smithyhttp.Response); ok {
		return raw.StatusCode, raw.Header
	}
	return 0, nil
}

// noVersion is the version ID of an object that was written while the bucket did not keep versions.
const noVersion = "null"

func (o Object) input() *s3.GetObjectInput {
	in := &s3.GetObjectInput{Bucket: &o.Bucket, Key: &o.Key}
	if o.Version != "" {
		in.VersionId = &o.Version
	}
	if o.Range != "" {
		in.Range = &o.Range
	}
	in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5 = o.Sealing()
	return in
}

// Sealing returns the request parameters for the customer's key. All of them are nil if there is no key.
func (o Object) Sealing() (algorithm, key, digest *string) {
	if o.CustomerKey == nil {
		return nil, nil, nil
	}
	sum := md5.Sum(o.CustomerKey) //nolint:gosec // required by the protocol
	return aws.String("AES256"), aws.String(base64.StdEncoding.EncodeToString(o.CustomerKey)),
		aws.String(base64.StdEncoding.EncodeToString(sum[:]))
}

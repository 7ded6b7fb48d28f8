package s3

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
	s3source "github.com/statecrypt/terraform-provider-statecrypt/internal/source/s3"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/objects"
)

// strong returns an ETag in the form used for comparisons. A proxy that compresses responses may have made it weak, and
// some stores leave out the quotes.
func strong(etag string) string { return `"` + unquoted(strings.TrimPrefix(etag, "W/")) + `"` }

func unquoted(etag string) string { return strings.Trim(etag, `"`) }

func (b *bucket) object(key string) object.Object {
	o := b.server.Object
	o.Key = key
	return o
}

// condition is the condition for a request that writes an object.
type condition struct {
	match string // the ETag that the object must have; "" for any ETag
	bare  bool   // whether to send match without quotes
	none  bool   // whether the object must not exist
	lock  bool   // whether the object belongs to a lock or a proof, and gets the lock tags
}

// put writes an object in one request, and returns its ETag.
func (b *bucket) put(ctx context.Context, key string, data []byte, how condition) (etag string, err error) {
	client, err := b.client(ctx)
	if err != nil {
		return "", err
	}
	ctx, cancel := objects.Within(ctx, b.Patience, len(data))
	defer cancel()
	in := &awss3.PutObjectInput{Bucket: &b.server.Bucket, Key: &key, Body: bytes.NewReader(data), ContentType: aws.String("application/json"),
		ACL: types.ObjectCannedACL(b.String("acl")), Tagging: b.tags(how.lock)}
	if how.bare {
		how.match = unquoted(how.match)
	}
	if how.match != "" {
		in.IfMatch = &how.match
	} else if how.none {
		in.IfNoneMatch = aws.String("*")
	}
	if !b.Bool("skip_s3_checksum") {
		sum := sha256.Sum256(data)
		in.ChecksumSHA256 = aws.String(base64.StdEncoding.EncodeToString(sum[:]))
	}
	in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5 = b.server.Sealing()
	switch keyID := b.String("kms_key_id"); {
	case !b.Bool("encrypt") || in.SSECustomerKey != nil:
	case keyID != "":
		in.ServerSideEncryption, in.SSEKMSKeyId = types.ServerSideEncryptionAwsKms, &keyID
	default:
		in.ServerSideEncryption = types.ServerSideEncryptionAes256
	}
	out, err := client.PutObject(ctx, in)
	if answer, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && answer.HTTPStatusCode() == http.StatusNotImplemented && b.unproven {
		in.IfMatch, in.IfNoneMatch, in.Body = nil, nil, bytes.NewReader(data) // the caller has already checked the condition
		out, err = client.PutObject(ctx, in)
	}
	if err != nil {
		words := b.server.Words
		words.Read, words.List, words.Decrypt, words.Writes = "s3:PutObject", "", "kms:GenerateDataKey", true
		if in.ChecksumSHA256 != nil && !s3source.IsAWS(client) {
			words.Checksum = "skip_s3_checksum"
		}
		return "", b.failed(ctx, key, object.Store{Client: client, Words: words}.Explain(b.object(key), err))
	}
	if etag = aws.ToString(out.ETag); etag == "" {
		return "", fmt.Errorf("%s: the store does not return the new version (ETag), so it cannot keep states; use another "+
			"store", outside.Quoted(key, 300))
	}
	return strong(etag), nil
}

func (b *bucket) tags(ofLock bool) *string {
	name := "state_tags"
	if ofLock {
		name = "lock_tags"
	}
	tags := url.Values{}
	for k, v := range b.StringMap(name) {
		tags.Set(k, v)
	}
	if len(tags) == 0 {
		return nil
	}
	return aws.String(tags.Encode())
}

// Delete deletes an object if it has this ETag. If the store refuses although the object still has this ETag, Delete
// finds out which form of If-Match the store obeys, unless this is known. It then tries again, without the quotes or
// without a condition. If the store obeys If-Match with quotes, Delete returns the refusal.
func (s *state) Delete(ctx context.Context, key, etag string) error {
	if _, err := s.client(ctx); err != nil {
		return err
	}
	match, _ := s.conditions()
	how := etag
	if match == bare {
		how = unquoted(etag)
	}
	for {
		err := s.removeOnce(ctx, key, how)
		if !errors.Is(err, store.ErrChanged) || match == quoted || how == "" {
			return err
		}
		if _, now, failed := s.Get(ctx, key, s.Limit); failed != nil || now != etag {
			return cmp.Or(failed, err)
		}
		if match != untried {
			how = "" // the object was checked just before
			continue
		}
		if err := s.proveMatch(ctx); err != nil {
			return err
		}
		switch match, _ = s.conditions(); match {
		case quoted:
			return err
		case bare:
			how = unquoted(etag)
		case untried, never:
			how = ""
		}
	}
}

// removeOnce deletes an object if it has this ETag. An empty ETag means no condition. Some stores ignore the condition.
// If a store refuses the condition as unknown, removeOnce repeats the request without it. Except on AWS, removeOnce
// does not repeat a request that may have succeeded, because a store that ignores the condition could then delete
// another object.
func (b *bucket) removeOnce(ctx context.Context, key, etag string) error {
	client, err := b.client(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := objects.Within(ctx, b.Patience, 0)
	defer cancel()
	once := func(o *awss3.Options) {
		if !s3source.IsAWS(client) {
			o.RetryMaxAttempts = 1
		}
	}
	in := &awss3.DeleteObjectInput{Bucket: &b.server.Bucket, Key: &key}
	if etag != "" {
		in.IfMatch = &etag
	}
	words := b.server.Words
	words.Read, words.List, words.Decrypt, words.Writes = "s3:DeleteObject", "", "", true
	for try := 0; ; try++ {
		_, err = client.DeleteObject(ctx, in, once)
		if err == nil {
			return nil
		}
		err = object.Store{Client: client, Words: words}.Explain(b.object(key), err)
		answer, _ := errors.AsType[*object.Answer](err)
		_, missing := source.IsMissing(err)
		switch {
		case missing:
			return nil
		case answer != nil && answer.Status == http.StatusPreconditionFailed:
			return store.ErrChanged
		case isConflict(answer) && try < objects.MaxTries: // another request was in progress, and nothing was deleted
			if err := objects.Pause(ctx); err != nil {
				return err
			}
			continue
		case in.IfMatch == nil || answer == nil || answer.Status != http.StatusNotImplemented && answer.Code != "InvalidArgument":
			return b.failed(ctx, key, err)
		}
		in.IfMatch = nil // the caller has already checked the condition
	}
}

// list returns the keys that begin with prefix.
func (b *bucket) list(ctx context.Context, prefix string) (keys []string, err error) {
	client, err := b.client(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := objects.Within(ctx, b.Patience, 0)
	defer cancel()
	pages := awss3.NewListObjectsV2Paginator(client, &awss3.ListObjectsV2Input{Bucket: &b.server.Bucket, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			words := b.server.Words
			words.Read, words.List, words.Decrypt, words.Unchecked = "", "", "", ""
			err = b.failed(ctx, prefix, object.Store{Client: client, Words: words}.Explain(b.object(prefix), err))
			if errors.Is(err, store.ErrDenied) {
				err = fmt.Errorf("%w. To list states, grant s3:ListBucket on the bucket", err)
			}
			return nil, err
		}
		for _, o := range page.Contents {
			keys = append(keys, aws.ToString(o.Key))
		}
	}
	return keys, nil
}

// isConflict reports whether another request was in progress, so that the same request may soon succeed.
func isConflict(answer *object.Answer) bool {
	return answer != nil && answer.Status == http.StatusConflict && !answer.IsInTheWay()
}

// failed translates an error about an object into an error of package store, if one fits.
func (b *bucket) failed(ctx context.Context, key string, err error) error {
	answer, ok := errors.AsType[*object.Answer](err)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !ok, answer.IsFull():
	case answer.Status == http.StatusForbidden || answer.Status == http.StatusUnauthorized:
		err = store.Denied(answer)
	case answer.Status == 0 || answer.Status == http.StatusTooManyRequests ||
		answer.Status >= 500 && answer.Status != http.StatusNotImplemented:
		err = &store.UnansweredError{Err: answer}
	}
	if strings.HasSuffix(key, objects.LockSuffix) || strings.HasSuffix(key, objects.ProofSuffix) {
		err = fmt.Errorf("%s: %w", outside.Quoted(key, 300), err)
	}
	return b.Voice().Speak(err)
}

package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/objects"
)

var _ store.Historian = (*state)(nil)

// noVersion is the ID of a version from a time when the bucket did not keep versions.
const noVersion = "null"

// unknownVersion has the error codes of stores for a version that they do not have or cannot have. rclone, which has no
// versions, answers NotImplemented.
const unknownVersion = "NoSuchVersion InvalidArgument XMinioInvalidResourceName NotImplemented"

// Versions lists the versions and delete markers of the object. Stores list the keys in order, and the versions of a
// key from new to old, so Versions stops as soon as it has enough.
func (s *state) Versions(ctx context.Context, limit int) (kept []store.Kept, more bool, err error) {
	client, err := s.client(ctx)
	if err != nil {
		return nil, false, err
	}
	within, cancel := objects.Within(ctx, s.Patience, 0)
	defer cancel()
	const most = 1000                 // in one page
	size := int32(min(limit+1, most)) //nolint:gosec // it fits
	in := &awss3.ListObjectVersionsInput{Bucket: &s.server.Bucket, Prefix: &s.key, MaxKeys: &size}
	var all []store.Kept
	for {
		page, err := client.ListObjectVersions(within, in)
		if err != nil {
			return nil, false, s.unlisted(within, client, err)
		}
		here, err := s.versionsIn(page)
		if err != nil {
			return nil, false, err
		}
		all = append(all, here...)
		if len(here) == 0 || len(all) > limit || !aws.ToBool(page.IsTruncated) || aws.ToString(page.NextKeyMarker) != s.key {
			return s.Newest(ctx, all, limit)
		}
		in.KeyMarker, in.VersionIdMarker = page.NextKeyMarker, page.NextVersionIdMarker
	}
}

// versionsIn returns the versions and delete markers of the object in a page, the newest first. The page has versions
// and delete markers apart, and often in whole seconds. If a version and a delete marker have the same time, versionsIn
// assumes that the delete marker is newer, unless the version is the current one.
func (s *state) versionsIn(page *awss3.ListObjectVersionsOutput) (here []store.Kept, err error) {
	add := func(key, id *string, modified *time.Time, size int64, status store.KeptStatus) {
		if aws.ToString(key) != s.key {
			return
		}
		v := store.Kept{ID: aws.ToString(id), Created: aws.ToTime(modified), Size: size, Status: status}
		if v.ID == "" {
			v.ID = noVersion
		}
		here = append(here, v)
	}
	for _, m := range page.DeleteMarkers {
		add(m.Key, m.VersionId, m.LastModified, 0, store.KeptDeleted)
	}
	for _, v := range page.Versions {
		if aws.ToInt64(v.Size) < 0 || v.Size == nil {
			return nil, errors.New("the list of versions does not come from S3, because it has no sizes; check the endpoint and any proxy")
		}
		status := store.KeptOlder
		if aws.ToBool(v.IsLatest) {
			status = store.KeptCurrent
		}
		add(v.Key, v.VersionId, v.LastModified, *v.Size, status)
	}
	slices.SortStableFunc(here, objects.ByAge)
	return here, nil
}

// unlisted returns the error for a list of versions that was refused.
func (s *state) unlisted(ctx context.Context, client *awss3.Client, err error) error {
	words := s.server.Words
	words.Read, words.List, words.Decrypt, words.Unchecked = "", "", "", ""
	err = s.failed(ctx, s.key, object.Store{Client: client, Words: words}.Explain(s.object(s.key), err))
	answer, _ := errors.AsType[*object.Answer](err)
	switch {
	case errors.Is(err, store.ErrDenied):
		return fmt.Errorf("%w; grant s3:ListBucketVersions on the bucket to list versions", err)
	case answer != nil && (answer.Status == http.StatusNotImplemented || answer.Status == http.StatusMethodNotAllowed):
		return fmt.Errorf("%w (HTTP status %d)", objects.ErrUnlisted, answer.Status)
	}
	return err
}

// ReadVersion reads a part of a version.
func (s *state) ReadVersion(ctx context.Context, id string, offset, length int64) ([]byte, error) {
	if id == "" || !object.IsVersion(id) {
		return nil, store.ErrNoVersion
	}
	client, err := s.client(ctx)
	if err != nil {
		return nil, err
	}
	part, of := objects.Part{Offset: offset, Length: length}, s.object(s.key)
	of.Version, of.Range = id, part.Range()
	c, err := object.Store{Client: client, Words: s.server.Words, Patience: s.Patience}.Get(ctx, of, s.Limit)
	if err == nil {
		return part.Cut(c.Status, c.Part, c.Data)
	}
	answer, _ := errors.AsType[*object.Answer](err)
	_, missing := source.IsMissing(err) // or the version is a delete marker
	switch {
	case missing, answer != nil && slices.Contains(strings.Fields(unknownVersion), answer.Code):
		return nil, store.ErrNoVersion
	case answer != nil && answer.Status == http.StatusRequestedRangeNotSatisfiable:
		return part.Cut(answer.Status, "", nil)
	}
	return nil, s.failed(ctx, s.key, err)
}

package s3

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/arn"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/memo"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/s3object"
)

// run is what the sources of one configured provider share: who they are to
// each region.
type run struct {
	settings source.Settings

	timeout, patience, maxWait time.Duration // zero is as long as is usual

	clients memo.Memo[clientKey, *client]
}

type clientKey struct{ block, region string }

func start(s source.Settings) source.Open { return newRun(s).open }

func newRun(s source.Settings) *run {
	s.Credentials.Table = credentials()
	return &run{settings: s}
}

func (r *run) open(req source.Request) (source.Source, error) {
	l := &location{
		run:    r,
		block:  req.String("credentials_name"),
		region: req.String("region"),
		object: s3object.Object{Bucket: req.String("bucket"), Version: req.String("version_id")},
		limit:  req.MaxSize,
	}
	if len(l.region) > 63 || !regionName.MatchString(l.region) {
		return nil, req.Errorf("region", "this cannot be the name of a region, such as eu-west-1")
	}
	if err := checkBucket(l.object.Bucket, l.region); err != nil {
		return nil, req.Errorf("bucket", "%w", err)
	}
	if len(l.object.Version) > maxVersion {
		return nil, req.Errorf("version_id", "this cannot be the ID of a version")
	}
	var err error
	if l.object.Key, err = keyOf(req); err != nil {
		return nil, err
	}
	l.access, err = choose(r.settings, l.block, l.region)
	if err != nil {
		return nil, err
	}
	l.object.CustomerKey = l.access.customerKey
	l.access.settings.MaxWait = r.maxWait
	return l, nil
}

// maxVersion is in bytes:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/versioning-workflows.html
const maxVersion = 1024

var (
	regionName  = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$`) // it becomes part of a host
	accessPoint = regexp.MustCompile(`^accesspoint/[a-z0-9-]+$`)
)

// checkBucket takes names and the ARNs of access points. Other ARNs lead to
// other services, some of which run programs of whoever owns them.
func checkBucket(name, region string) error {
	if !strings.HasPrefix(name, "arn:") {
		return s3object.CheckBucket(name)
	}
	a, err := arn.Parse(name)
	switch {
	case err != nil || a.Service != "s3" || len(a.Resource) > 62 || !accessPoint.MatchString(a.Resource):
		return errors.New("the name of a bucket or the ARN of an access point is required")
	case a.Region != region:
		return errors.New("the access point is in another region than the one that region says")
	}
	return nil
}

// keyOf returns the key of the workspace's state, as the backend makes it.
func keyOf(req source.Request) (string, error) {
	key, prefix := req.String("key"), req.String("workspace_key_prefix")
	if err := s3object.CheckKey(key); err != nil {
		return "", req.Errorf("key", "%w", err)
	}
	if strings.HasPrefix(prefix, "/") || strings.HasSuffix(prefix, "/") {
		return "", req.Errorf("workspace_key_prefix", "it must not begin or end with a slash")
	}
	if req.Workspace == "" || req.Workspace == "default" {
		return key, nil
	}
	key = path.Join(prefix, req.Workspace, key)
	if err := s3object.CheckKey(key); err != nil {
		return "", req.Errorf("workspace_key_prefix", "%w", err)
	}
	return key, nil
}

// location is a state in a bucket.
type location struct {
	*run
	block, region string
	access        access
	object        s3object.Object
	limit         int64
}

func (l *location) String() string {
	version := ""
	if l.object.Version != "" {
		version = fmt.Sprintf(" (version %q)", l.object.Version)
	}
	return fmt.Sprintf("object %q%s in the S3 bucket %q", l.object.Key, version, l.object.Bucket)
}

// Fetch reads the object.
func (l *location) Fetch(ctx context.Context) (*source.Snapshot, error) {
	c, err := l.clients.Do(ctx, clientKey{l.block, l.region}, func(ctx context.Context) (*client, error) {
		return l.access.connect(ctx, l.timeout, l.patience)
	})
	if err != nil {
		return nil, plain(ctx, err)
	}
	// Those that have expired are renewed, and what goes wrong with that is no
	// error of S3.
	if err := c.settings.Retrieve(ctx, c.store.Client.Options().Credentials); err != nil {
		return nil, plain(ctx, err)
	}
	snapshot, err := c.store.Read(ctx, l.object, l.limit)
	if err != nil {
		return nil, err
	}
	snapshot.Warnings = c.warnings
	return snapshot, nil
}

// plain is an error without what it wraps, which repeats what servers and
// programs answered.
func plain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.New(err.Error())
}

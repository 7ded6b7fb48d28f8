package azurerm

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	azuresource "github.com/statecrypt/terraform-provider-statecrypt/internal/source/azurerm"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/objects"
)

// found describes a blob, without its content, at the time of a request.
type found struct {
	there    bool
	etag     string
	size     int64
	leased   bool
	metadata map[string]*string // the names are in lower case, as the CLIs write them
	tags     int64              // number of index tags
	tier     *blob.AccessTier   // the tier set on the blob; nil means the account's default
	frozen   bool               // whether a policy prevents changes
	changed  time.Time
}

// memory records facts about a state's blob between requests.
type memory struct {
	mu      sync.Mutex
	etag    string // the ETag of the state that was last read or written
	content string // the version of that state
	last    *found // the blob when the lock was last read
	mine    string // the lease ID that we last requested
	proven  bool   // whether the server is known to obey conditions
}

// with calls f with the mutex held.
func (m *memory) with(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

// know records the version of the state in the blob with this ETag.
func (m *memory) know(etag, version string) { m.with(func() { m.etag, m.content = etag, version }) }

// moved records that a metadata change gave the blob a new ETag.
func (m *memory) moved(from, to string) {
	m.with(func() {
		if m.etag == from {
			m.etag = to
		}
	})
}

// version returns the version of the state in the blob with this ETag, if it is known.
func (m *memory) version(etag string) (version string, known bool) {
	m.with(func() { version, known = m.content, m.etag != "" && m.etag == etag })
	return version, known
}

// takeLast returns the blob as it was last found, and forgets it, because the blob may change before another request.
func (m *memory) takeLast() (b *found) {
	m.with(func() { b, m.last = m.last, nil })
	return b
}

// leaseFor returns our lease ID if we hold the lease on b, or nil otherwise.
func (m *memory) leaseFor(b *found) (lease *string) {
	m.with(func() {
		if by := holder(b); by != nil && m.mine != "" && leaseID(by.ID) == m.mine {
			lease = to.Ptr(m.mine)
		}
	})
	return lease
}

// download returns the content and the ETag of a blob. If there is no blob, the ETag is an empty string.
func (c *container) download(ctx context.Context, name string) (data []byte, etag string, err error) {
	ctx, cancel := objects.Within(ctx, c.server.Timeout, 0)
	defer cancel()
	client, err := c.server.Blob(ctx, name, nil)
	if err != nil {
		return nil, "", c.failed(ctx, name, err)
	}
	data, answer, err := c.server.Download(ctx, client)
	if isMissing(err) {
		return nil, "", nil
	}
	return data, strong(answer.ETag), c.failed(ctx, name, err)
}

// head returns the properties of a blob.
func (c *container) head(ctx context.Context, name string) (*found, error) {
	ctx, cancel := objects.Within(ctx, c.server.Timeout, 0)
	defer cancel()
	client, err := c.server.Blob(ctx, name, nil)
	if err != nil {
		return nil, c.failed(ctx, name, err)
	}
	p, err := client.GetProperties(ctx, &blob.GetPropertiesOptions{CPKInfo: c.server.CustomerKey})
	switch {
	case isMissing(err):
		return &found{}, nil
	case err != nil:
		return nil, c.failed(ctx, name, err)
	case p.ETag == nil || p.BlobType == nil:
		return nil, c.failed(ctx, name, web.Final("the answer does not come from Azure Storage; check the proxy settings and blob_endpoint"))
	}
	b := &found{there: true, etag: strong(p.ETag), size: value(p.ContentLength), leased: value(p.LeaseStatus) == "locked",
		metadata: map[string]*string{}, tags: value(p.TagCount), changed: value(p.LastModified),
		frozen: value(p.LegalHold) || value(p.ImmutabilityPolicyExpiresOn).After(time.Now())}
	for name, text := range p.Metadata {
		b.metadata[strings.ToLower(name)] = text
	}
	if p.AccessTier != nil && !value(p.AccessTierInferred) {
		b.tier = (*blob.AccessTier)(p.AccessTier)
	}
	return b, nil
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// strong returns an ETag in the form used for comparisons. A proxy that compresses responses may have made it weak.
func strong(etag *azcore.ETag) string {
	if etag == nil {
		return ""
	}
	return strings.TrimPrefix(string(*etag), "W/")
}

func isMissing(err error) bool {
	status, code := azuresource.Refusal(err)
	return status == http.StatusNotFound && code == "BlobNotFound"
}

// only returns request conditions that require the blob to be unchanged since it was found. If the blob is leased,
// lease is the lease ID.
func (b *found) only(lease *string) *blob.AccessConditions {
	is := &blob.ModifiedAccessConditions{IfMatch: to.Ptr(azcore.ETag(b.etag))}
	if !b.there {
		is = &blob.ModifiedAccessConditions{IfNoneMatch: to.Ptr(azcore.ETagAny)} // quotes would make it an ETag
	}
	return &blob.AccessConditions{ModifiedAccessConditions: is, LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: lease}}
}

// put replaces blob b if it is unchanged, and returns the new ETag. It sends the blob's metadata, index tags and tier
// again, because the service would otherwise drop them.
func (s *state) put(ctx context.Context, name string, data []byte, b *found) (etag string, err error) {
	ctx, cancel := objects.Within(ctx, s.server.Timeout, len(data))
	defer cancel()
	client, err := s.server.Blob(ctx, name, nil)
	if err != nil {
		return "", s.failed(ctx, name, err)
	}
	o := &blockblob.UploadOptions{
		Metadata: b.metadata, Tier: b.tier, HTTPHeaders: &blob.HTTPHeaders{BlobContentType: to.Ptr("application/json")},
		CPKInfo: s.server.CustomerKey, CPKScopeInfo: s.scope, AccessConditions: b.only(s.leaseFor(b)),
	}
	if b.tags > 0 {
		tags, err := client.GetTags(ctx, nil)
		if err != nil {
			return "", s.failed(ctx, name, err)
		}
		o.Tags = map[string]string{}
		for _, t := range tags.BlobTagSet {
			o.Tags[value(t.Key)] = value(t.Value)
		}
	}
	answer, err := client.Upload(ctx, content{bytes.NewReader(data)}, o)
	if err == nil && answer.ETag == nil {
		err = web.Final("the answer does not contain the blob's new version (ETag); check the proxy settings and blob_endpoint")
	}
	return strong(answer.ETag), s.failed(ctx, name, err)
}

// snapshot creates a snapshot of blob b, before a write replaces its content.
func (s *state) snapshot(ctx context.Context, name string, b *found) error {
	ctx, cancel := objects.Within(ctx, s.server.Timeout, 0)
	defer cancel()
	client, err := s.server.Blob(ctx, name, nil)
	if err == nil {
		_, err = client.CreateSnapshot(ctx, &blob.CreateSnapshotOptions{
			CPKInfo: s.server.CustomerKey, CPKScopeInfo: s.scope, AccessConditions: b.only(s.leaseFor(b)),
		})
	}
	return s.failed(ctx, name, err)
}

// describe replaces the metadata of blob b, and records the new ETag in b.
func (s *state) describe(ctx context.Context, name string, b *found, lease *string) error {
	ctx, cancel := objects.Within(ctx, s.server.Timeout, 0)
	defer cancel()
	client, err := s.server.Blob(ctx, name, nil)
	if err != nil {
		return s.failed(ctx, name, err)
	}
	answer, err := client.SetMetadata(ctx, b.metadata, &blob.SetMetadataOptions{
		CPKInfo: s.server.CustomerKey, CPKScopeInfo: s.scope, AccessConditions: b.only(lease),
	})
	if err == nil {
		etag := strong(answer.ETag)
		s.moved(b.etag, etag)
		b.etag = etag
	}
	return s.failed(ctx, name, err)
}

// content is the body of a request that writes a state. It implements [io.ReadSeekCloser].
type content struct{ *bytes.Reader }

// Close does nothing.
func (content) Close() error { return nil }

// fresh returns another reader of the same bytes.
func (c content) fresh() (io.ReadCloser, error) {
	return io.NopCloser(io.NewSectionReader(c, 0, c.Size())), nil
}

// separate gives each attempt of a request its own body, see the transport of [azuresource.Connect].
type separate struct{}

// Do implements [policy.Policy].
func (separate) Do(r *policy.Request) (*http.Response, error) {
	if c, ok := r.Body().(content); ok {
		r.Raw().GetBody = c.fresh
	}
	return r.Next()
}

// leasing turns metadata requests into lease requests, which differ only in the query and the headers. The SDK's own
// lease package would add Apache Arrow to the program.
type leasing struct{}

type leaseHeaders struct{}

// Do implements [policy.Policy].
func (leasing) Do(r *policy.Request) (*http.Response, error) {
	headers, isLease := r.Raw().Context().Value(leaseHeaders{}).(map[string]string)
	if !isLease {
		return r.Next()
	}
	query := r.Raw().URL.Query()
	query.Set("comp", "lease")
	r.Raw().URL.RawQuery = query.Encode()
	for name, text := range headers {
		r.Raw().Header.Set("x-ms-lease-"+name, text)
	}
	if id := headers["proposed-id"]; id != "" {
		r.Raw().Header.Set("x-ms-proposed-lease-id", id)
		r.Raw().Header.Del("x-ms-lease-proposed-id")
	}
	answer, err := r.Next()
	if err == nil && (answer.StatusCode == http.StatusCreated || answer.StatusCode == http.StatusAccepted) { // acquired or broken
		answer.StatusCode = http.StatusOK
	}
	return answer, err
}

// lease sends a lease request for a blob. If b is not nil, the blob must be unchanged since b was found.
func (s *state) lease(ctx context.Context, name string, b *found, headers map[string]string) error {
	ctx, cancel := objects.Within(context.WithValue(ctx, leaseHeaders{}, headers), s.server.Timeout, 0)
	defer cancel()
	client, err := s.server.Blob(ctx, name, nil)
	if err == nil {
		o := &blob.SetMetadataOptions{}
		if b != nil {
			o.AccessConditions = b.only(nil)
		}
		_, err = client.SetMetadata(ctx, nil, o)
	}
	return s.failed(ctx, name, err)
}

// isFrozen reports whether a policy prevents changes to the container's blobs.
func (c *container) isFrozen(ctx context.Context) (bool, error) {
	ctx, cancel := objects.Within(ctx, c.server.Timeout, 0)
	defer cancel()
	client, err := c.server.Blob(ctx, "", url.Values{"restype": {"container"}})
	var raw *http.Response
	if err == nil {
		_, err = client.GetProperties(policy.WithCaptureResponse(ctx, &raw), nil)
	}
	if status, _ := azuresource.Refusal(err); status != 0 { // the credentials may allow access to the blob only
		return false, nil
	}
	if err != nil || raw == nil {
		return false, c.failed(ctx, "", err)
	}
	return raw.Header.Get("x-ms-has-immutability-policy") == "true" || raw.Header.Get("x-ms-has-legal-hold") == "true", nil
}

const withVersions = "versions"

// list calls f for each page of the blobs that begin with prefix. The argument include names what to list beside blobs:
// versions, snapshots, or deleted ones. If f returns false, list stops.
func (c *container) list(ctx context.Context, prefix, include string, f func([]listed) bool) error {
	ctx, cancel := objects.Within(ctx, c.server.Timeout, 0)
	defer cancel()
	for marker := ""; ; {
		query := url.Values{"restype": {"container"}, "comp": {"list"}, "prefix": {prefix}, "maxresults": {"1000"}}
		if include != "" {
			query.Set("include", include)
		}
		if marker != "" {
			query.Set("marker", marker)
		}
		client, err := c.server.Blob(ctx, "", query)
		var data []byte
		if err == nil {
			data, err = c.server.Page(ctx, client)
		}
		if status, _ := azuresource.Refusal(err); status == http.StatusBadRequest && strings.HasPrefix(include, withVersions) {
			include = strings.TrimPrefix(include, withVersions+",") // accounts with folders have no versions
			continue
		}
		if err != nil {
			return c.failed(ctx, prefix, err)
		}
		page, next, err := blobsIn(data)
		if err != nil {
			return c.failed(ctx, prefix, err)
		}
		if marker = next; !f(page) || marker == "" {
			return nil
		}
	}
}

// listed is a blob, a version, or a snapshot in a list.
type listed struct {
	name              string
	snapshot, version string    // the ID, which is a time; "" for a blob
	current           bool      // whether this is the current version
	deleted           bool      // whether it is soft-deleted
	size              int64     // negative if unknown
	modified          time.Time // zero if unknown
	md5, etag         string    // "" if unknown
}

// blobsIn returns the blobs in a list response, without folders, and the marker of the next page.
func blobsIn(data []byte) (blobs []listed, next string, err error) {
	var page struct {
		Blobs struct {
			Blob []struct {
				Name struct {
					Text    string `xml:",chardata"`
					Encoded bool   `xml:",attr"`
				}
				Snapshot         string
				VersionID        string `xml:"VersionId"`
				IsCurrentVersion bool
				Deleted          bool
				Properties       struct {
					ResourceType string
					Etag         string
					Modified     string `xml:"Last-Modified"`
					Size         *int64 `xml:"Content-Length"`
					MD5          string `xml:"Content-MD5"`
				}
			}
		}
		NextMarker string
	}
	if xml.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &page) != nil {
		return nil, "", web.Final("the answer is not a list from Azure Storage; check the proxy settings and blob_endpoint")
	}
	for _, b := range page.Blobs.Blob {
		name := b.Name.Text
		if decoded, err := url.PathUnescape(name); b.Name.Encoded && err == nil {
			name = decoded
		}
		if b.Properties.ResourceType != "directory" {
			modified, _ := http.ParseTime(b.Properties.Modified) // the time may be unknown
			size := int64(-1)
			if b.Properties.Size != nil {
				size = *b.Properties.Size
			}
			blobs = append(blobs, listed{name, b.Snapshot, b.VersionID, b.IsCurrentVersion, b.Deleted, size, modified, b.Properties.MD5,
				b.Properties.Etag})
		}
	}
	return blobs, page.NextMarker, nil
}

// otherError means that a condition is not met, because the blob has changed.
type otherError struct{ error }

// Unwrap returns the error that users see.
func (e otherError) Unwrap() error { return e.error }

func isOther(err error) bool {
	_, is := errors.AsType[otherError](err)
	return is
}

// errTaken means that another run has the lease.
var errTaken = objects.TakenError{Err: &store.HeldError{}}

// failed translates an error about a blob into an error of package store, if one fits.
func (c *container) failed(ctx context.Context, name string, err error) error {
	status, code := azuresource.Refusal(err)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case code == "ConditionNotMet" || code == "BlobAlreadyExists" || code == "BlobNotFound":
		return otherError{store.ErrChanged}
	case strings.HasPrefix(code, "LeaseIdMissing"):
		return &store.HeldError{}
	case code == "LeaseAlreadyPresent" || strings.HasPrefix(code, "LeaseIsBreaking"):
		return errTaken
	case strings.HasPrefix(code, "Lease"): // the lease is not ours or has ended
		return store.ErrLost
	}
	explained := c.server.Explain(ctx, name, err)
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		explained = store.Denied(explained)
	case status == 0 && web.Own(err) == nil || status == http.StatusTooManyRequests || status >= 500:
		explained = &store.UnansweredError{Err: explained}
	}
	if strings.HasSuffix(name, objects.ProofSuffix) {
		explained = fmt.Errorf("%q: %w", name, explained)
	}
	return c.Voice().Speak(explained)
}

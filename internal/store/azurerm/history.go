package azurerm

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	azuresource "github.com/statecrypt/terraform-provider-statecrypt/internal/source/azurerm"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/objects"
)

var _ store.Historian = (*state)(nil)

// aTime matches the IDs of versions and snapshots, and anETag matches ETags without their quotes.
var (
	aTime  = lazyregexp.New(`^\d{4}-\d\d-\d\dT[\d:.]{1,20}Z$`)
	anETag = lazyregexp.New(`^[\w.:+/=-]{1,200}$`)
)

// version is a version in a list, with the digest of its content if the service knows it.
type version struct {
	store.Kept
	md5 string
}

// Versions lists the versions and snapshots of the blob, and those that are soft-deleted. Their IDs are the times that
// the service prints. In an account that keeps no versions, the ID of the current state is its ETag.
//
// Each lock changes the metadata of the blob twice, and each change is another version. So of neighbors with the same
// content, Versions lists only the newest one, with the time of the oldest one, which is that of the write. The digests
// that it compares come from the service. Someone who can write a blob can give it a false digest, which could hide an
// older version, but never the current state.
func (s *state) Versions(ctx context.Context, limit int) (kept []store.Kept, more bool, err error) {
	all, err := s.versions(ctx)
	if err != nil {
		return nil, false, err
	}
	slices.Reverse(all) // the service lists the oldest first
	slices.SortStableFunc(all, func(a, b version) int { return objects.ByAge(a.Kept, b.Kept) })
	for i, v := range all {
		if n := len(kept) - 1; i > 0 && v.md5 != "" && v.md5 == all[i-1].md5 && v.Size == kept[n].Size &&
			(v.Status == store.KeptUndelete) == (kept[n].Status == store.KeptUndelete) {
			kept[n].Created = v.Created
			continue
		}
		kept = append(kept, v.Kept)
	}
	if n := len(kept) - 1; n >= 0 && kept[n].Size == 0 {
		kept = kept[:n] // the first lock has created the blob
	}
	return s.Newest(ctx, kept, limit)
}

// versions lists the versions of the blob. Other blobs follow if their names begin with its name.
func (s *state) versions(ctx context.Context) (all []version, err error) {
	pages := 0
	failed := s.list(ctx, s.key, withVersions+",snapshots,deleted", func(page []listed) bool {
		others := false
		for _, b := range page {
			if b.name != s.key {
				others = true
				continue
			}
			v := version{store.Kept{ID: b.version, Created: b.modified, Size: b.size}, b.md5}
			if at, failed := time.Parse(time.RFC3339Nano, b.version); failed == nil {
				v.Created = at
			}
			if v.ID == "" {
				v.ID = b.snapshot
			}
			switch {
			case b.size < 0:
				err = web.Final("the answer is not a list from Azure Storage; check any proxy and blob_endpoint")
			case b.deleted:
				v.Status = store.KeptUndelete
			case b.current, v.ID == "":
				v.Status = store.KeptCurrent
			}
			if v.ID == "" {
				v.ID = b.etag
			}
			all = append(all, v)
		}
		if pages++; pages > objects.MaxPages || len(all) > objects.MaxVersions {
			err = objects.ErrTooMany
		}
		return err == nil && !others
	})
	if failed != nil {
		return nil, failed
	}
	return all, err
}

// ReadVersion reads a part of a version, of a snapshot, or of the blob if it has the ETag id. Emulators have no
// versions, and send the current blob instead, so ReadVersion asks them for the snapshot first.
func (s *state) ReadVersion(ctx context.Context, id string, offset, length int64) (data []byte, err error) {
	part := objects.Part{Offset: offset, Length: length}
	kinds := []string{"versionid", "snapshot"}
	switch {
	case !anETag.MatchString(id):
		return nil, store.ErrNoVersion
	case !aTime.MatchString(id):
		kinds = []string{"etag"}
	case !s.server.IsAzure():
		slices.Reverse(kinds)
	}
	for _, kind := range kinds {
		if data, err = s.readVersion(ctx, kind, id, part); !errors.Is(err, store.ErrNoVersion) {
			break
		}
	}
	return data, err
}

func (s *state) readVersion(ctx context.Context, kind, id string, part objects.Part) ([]byte, error) {
	within, cancel := objects.Within(ctx, s.server.Timeout, 0)
	defer cancel()
	query, options := url.Values{}, blob.DownloadStreamOptions{}
	if kind == "etag" {
		options.AccessConditions = &blob.AccessConditions{
			ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: to.Ptr(azcore.ETag(`"` + id + `"`))},
		}
	} else {
		query.Set(kind, id)
	}
	if part.Range() != "" {
		options.Range = blob.HTTPRange{Offset: part.Offset, Count: max(part.Length, 0)}
		if part.Length == 0 {
			options.Range.Count = 1
		}
	}
	client, err := s.server.Blob(within, s.key, query)
	if err != nil {
		return nil, s.failed(within, s.key, err)
	}
	status, data, answer, err := s.server.DownloadPart(within, client, options)
	refused, code := azuresource.Refusal(err)
	switch {
	case isMissing(err), code == "ConditionNotMet", code == "InvalidQueryParameterValue":
		return nil, store.ErrNoVersion
	case refused == http.StatusRequestedRangeNotSatisfiable:
		return part.Cut(refused, "", nil)
	case err != nil:
		return nil, s.failed(within, s.key, err)
	case kind == "versionid" && value(answer.VersionID) != id, kind == "etag" && strong(answer.ETag) != `"`+id+`"`:
		return nil, store.ErrNoVersion
	}
	return part.Cut(status, value(answer.ContentRange), data)
}

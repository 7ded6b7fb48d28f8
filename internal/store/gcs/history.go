package gcs

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	gcssource "github.com/statecrypt/terraform-provider-statecrypt/internal/source/gcs"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/objects"
)

var _ store.Historian = (*state)(nil)

// generation is a generation in a list, and the time when it was replaced or deleted.
type generation struct {
	store.Kept
	ended time.Time
}

// Versions lists the generations of the object, including those that are soft-deleted. Cloud Storage keeps no marker of
// a deletion, so Versions adds one if there is no current generation. The ID of the marker is its time.
// https://cloud.google.com/storage/docs/json_api/v1/objects/list
func (s *state) Versions(ctx context.Context, limit int) (kept []store.Kept, more bool, err error) {
	all, err := s.generations(ctx, "versions")
	if err != nil {
		return nil, false, err
	}
	deleted, err := s.generations(ctx, "softDeleted")
	if err != nil && !isRefused(err, http.StatusBadRequest) { // 400: the bucket has no soft-delete policy
		return nil, false, err
	}
	all = append(all, deleted...)
	slices.SortFunc(all, func(a, b generation) int { // numbers without leading zeros
		return cmp.Or(cmp.Compare(len(b.ID), len(a.ID)), cmp.Compare(b.ID, a.ID))
	})
	if len(all) > 0 && all[0].Status != store.KeptCurrent {
		at := all[0].ended
		kept = append(kept, store.Kept{ID: at.Format(time.RFC3339Nano), Created: at, Status: store.KeptDeleted})
	}
	for _, g := range all {
		kept = append(kept, g.Kept)
	}
	return s.Newest(ctx, kept, limit)
}

// generations lists the generations of the object, the oldest first. The parameter which chooses those that can be read
// (versions) or those that are soft-deleted (softDeleted).
func (s *state) generations(ctx context.Context, which string) (all []generation, err error) {
	query := url.Values{"prefix": {s.Name}, which: {"true"},
		"fields": {"items(name,generation,size,timeCreated,timeDeleted,softDeleteTime),nextPageToken"}}
	for range objects.MaxPages {
		var page struct {
			Items []struct {
				Name, Generation, Size                   string
				TimeCreated, TimeDeleted, SoftDeleteTime time.Time // zero if the object has no such time
			}
			NextPageToken string
		}
		if err := s.send(ctx, request{
			method: http.MethodGet, to: s.server.URL(query, "o"),
			does: "listing the versions of the state", right: "storage.objects.list on the bucket to the account of the block",
		}, &page); err != nil {
			return nil, err
		}
		for _, o := range page.Items {
			size, err := strconv.ParseInt(o.Size, 10, 64)
			g := generation{store.Kept{ID: o.Generation, Created: o.TimeCreated, Size: size}, o.TimeDeleted}
			switch isSoftDeleted := !o.SoftDeleteTime.IsZero(); {
			case o.Name != s.Name, isSoftDeleted != (which == "softDeleted"): // some servers do not know the parameter
				continue
			case err != nil || size < 0 || !gcssource.IsGeneration(g.ID):
				return nil, s.failed(ctx, s.Name, web.Final("the list of versions does not come from Cloud Storage; check "+
					"storage_custom_endpoint in {credentials}"))
			case isSoftDeleted:
				g.Status, g.ended = store.KeptUndelete, o.SoftDeleteTime
			case o.TimeDeleted.IsZero():
				g.Status = store.KeptCurrent
			}
			all = append(all, g)
		}
		switch {
		case len(all) > objects.MaxVersions:
			return nil, objects.ErrTooMany
		case page.NextPageToken == "":
			return all, nil
		}
		query.Set("pageToken", page.NextPageToken)
	}
	return nil, objects.ErrTooMany
}

// ReadVersion reads a part of a generation. If a server other than Google's answers 404 without a reason, ReadVersion
// lists the bucket, because the bucket may be missing.
func (s *state) ReadVersion(ctx context.Context, id string, offset, length int64) ([]byte, error) {
	if !gcssource.IsGeneration(id) {
		return nil, store.ErrNoVersion
	}
	s.warnOfExposure(ctx)
	within, cancel := objects.Within(ctx, s.Patience, 0)
	defer cancel()
	part := objects.Part{Offset: offset, Length: length}
	status, sent, data, err := s.server.GetPart(within, s.Name, id, part.Range(), s.Limit)
	switch {
	case err == nil:
		return part.Cut(status, sent, data)
	case isRefused(err, http.StatusRequestedRangeNotSatisfiable):
		return part.Cut(http.StatusRequestedRangeNotSatisfiable, "", nil)
	case errors.Is(err, gcssource.ErrNoGeneration):
		return nil, store.ErrNoVersion
	case isRefused(err, http.StatusNotFound) && !s.server.IsOwn():
		if _, failed := s.list(ctx, s.Name); failed == nil {
			return nil, store.ErrNoVersion
		}
	}
	return nil, s.failed(within, s.Name, err)
}

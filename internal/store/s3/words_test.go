package s3

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object/objecttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/objects"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
)

// TestRefusedWrites tests answers of stores that do not take a write, with the code of each store: the error says which
// setting or place is wrong. Only a store that is out of order is asked again.
func TestRefusedWrites(t *testing.T) {
	t.Parallel()
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "refused writes", secret, objecttest.Canary)
	for _, c := range []struct {
		status  int
		code    string // "" for an answer without a code, as of a proxy
		said    string // the message, "" for a canary
		without bool   // whether the block sets skip_s3_checksum
	}{
		{status: 501, code: "NotImplemented"}, // Cloudflare R2, about checksums; MinIO about keys of KMS
		{status: 501, code: "NotImplemented", without: true},
		{status: 400, code: "InvalidArgument"}, // Backblaze
		{status: 400, code: "InvalidArgument", without: true},
		{status: 400, code: "InvalidRequest"},
		{status: 400, code: "XAmzContentSHA256Mismatch"}, // Ceph
		{status: 400, code: "XAmzContentSHA256Mismatch", without: true},
		{status: 400, code: "BadDigest"},
		{status: 403, code: "QuotaExceeded"}, // Ceph
		{status: 403, code: "AccessDenied"},
		{status: 405, code: "MethodNotAllowed"},
		{status: 405},
		{status: 409, code: "ObjectParentIsFile"},                                                        // versitygw
		{status: 400, code: "XMinioParentIsObject"},                                                      // MinIO until 2022
		{status: 409, code: "ExistingObjectIsDirectory"},                                                 // versitygw
		{status: 409, code: "XMinioObjectExistsAsDirectory"},                                             // the same, and some disks of today's
		{status: 400, code: "InvalidRequest", said: `Object name "net/prod" is the name of a directory`}, // rclone
		{status: 400, code: "InvalidRequest", said: `Directory "net" is the name of an object`},          // the same
		{status: 413},
		{status: 400, code: "EntityTooLarge"},
		{status: 507},
		{status: 507, code: "XMinioStorageFull"}, // MinIO
		{status: 503, code: "SlowDown"},
	} {
		name := fmt.Sprint(c.status, " ", c.code, " ", c.without, " ", strings.ReplaceAll(c.said, "/", "."))
		t.Run(strings.TrimSpace(name), func(t *testing.T) {
			t.Parallel()
			s := serve(t, objecttest.Kept)
			b := s.block
			if c.without {
				b = b.With("skip_s3_checksum", true)
			}
			s.mayBe.Store(new(func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case r.Method != http.MethodPut:
					return false
				case c.code == "":
					w.WriteHeader(c.status)
				default:
					objecttest.Refuse(w, c.status, c.code, cmp.Or(c.said, objecttest.Canary))
				}
				return true
			}))
			err := at(t, b).Lock(t.Context(), storetest.Lock("1"))
			says.Error(t, strings.TrimPrefix(t.Name(), "TestRefusedWrites/"), err)
			_, unanswered := errors.AsType[*store.UnansweredError](err)
			if unanswered != (c.status == 503) || errors.Is(err, store.ErrDenied) != (c.code == "AccessDenied") {
				t.Errorf("another try helps: %t; rights are missing: %t", unanswered, errors.Is(err, store.ErrDenied))
			}
		})
	}
}

// TestConflictOfProof tests a store that is busy with another request for the proof: wrap asks again.
func TestConflictOfProof(t *testing.T) {
	t.Parallel()
	s := serve(t, objecttest.Kept)
	var once atomic.Bool
	s.mayBe.Store(new(func(w http.ResponseWriter, r *http.Request) bool {
		conflicts := r.Method == http.MethodPut && once.CompareAndSwap(false, true)
		if conflicts {
			objecttest.Refuse(w, http.StatusConflict, "ConditionalRequestConflict", "")
		}
		return conflicts
	}))
	if must(t, ready(t.Context(), at(t, s.block))); !once.Load() {
		t.Error("nothing was in conflict")
	}
}

// TestFolders tests a store that keeps no object beside objects below its key: a run is refused before it begins, each
// time. On other stores, nothing of the test stays.
func TestFolders(t *testing.T) {
	t.Parallel()
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "folders", secret, objecttest.Canary)
	for name, c := range map[string]struct {
		folders, there bool // whether the store has folders, and whether the state exists
		denied         string
		refused        bool
	}{
		"folders":               {folders: true, refused: true},
		"folders, and it is":    {folders: true, there: true},
		"none":                  {},
		"nothing may be listed": {folders: true, denied: "s3:ListBucket"},
		"nothing may be tried":  {folders: true, denied: "s3:PutObject"},
	} {
		s := serve(t, objecttest.Kept)
		s.Put(bucketOf, "net/prod/x", []byte("x"))
		if c.there {
			s.Put(bucketOf, "net/prod", storetest.State(1))
		}
		s.Allows = func(action, resource string) bool {
			return action != c.denied || action == "s3:PutObject" && !strings.HasSuffix(resource, "/-")
		}
		s.mayBe.Store(new(func(w http.ResponseWriter, r *http.Request) bool {
			refuses := c.folders && r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, objects.ProofSuffix+"/-")
			if refuses && c.denied == "" {
				objecttest.Refuse(w, http.StatusConflict, "ObjectParentIsFile", objecttest.Canary)
			}
			return refuses && c.denied == ""
		}))
		for round := range 2 {
			err := ready(t.Context(), at(t, s.block))
			if (err != nil) != c.refused || (s.Get(bucketOf, "net/prod"+objects.ProofSuffix) == nil) != c.refused ||
				s.Get(bucketOf, "net/prod"+objects.ProofSuffix+"/-") != nil {
				t.Errorf("%s: %v", name, err)
			}
			if c.refused && round == 0 {
				says.Error(t, name, err)
			}
		}
	}
}

package gcs

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gcs/gcstest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

const objectOf = "net/default.tfstate"

// TestVersions tests the list of generations of a state beside other objects, in pages of any size.
func TestVersions(t *testing.T) {
	t.Parallel()
	for _, s := range []*service{atGoogle(t), serve(t)} {
		for pageSize := range 4 {
			s.Create(bucketOf)
			s.Change(func(s *gcstest.Service) { s.PageSize = pageSize })
			h := storetest.Historian(t, carefully(s.at(t, s.block)))
			storetest.Versions(t, h, 10, "")
			put := func(object string, data string) string {
				return s.Put(bucketOf, object, gcstest.Object{Data: []byte(data)})
			}
			put("net/default.tflock", "lock")
			put(objectOf+".backup", "backup")
			one, two, three := put(objectOf, "1"), put(objectOf, "22"), put(objectOf, "333")
			storetest.Versions(t, h, 10, "current 3, older 2, older 1", three, two, one)
			storetest.Versions(t, h, 3, "current 3, older 2, older 1", three, two, one)
			storetest.Versions(t, h, 2, "current 3, older 2, more", three, two)
			s.Delete(bucketOf, objectOf)
			storetest.Versions(t, h, 2, "deleted 0, older 3, more", "", three)
		}
	}
}

// TestSoftDeletedVersions tests a bucket that keeps no versions, but soft-deletes objects, as new buckets do.
func TestSoftDeletedVersions(t *testing.T) {
	t.Parallel()
	s := atGoogle(t)
	s.SoftDelete, s.PageSize = true, 1
	h := storetest.Historian(t, s.at(t, s.block))
	var ids []string
	for n := range 3 {
		ids = append(ids, s.Put(bucketOf, objectOf, gcstest.Object{Data: bytes.Repeat([]byte("x"), n+1)}))
	}
	storetest.Versions(t, h, 10, "current 3, undelete 2, undelete 1", ids[2], ids[1], ids[0])
	if _, err := h.ReadVersion(t.Context(), ids[0], 0, -1); !errors.Is(err, store.ErrNoVersion) {
		t.Errorf("read: %v", err)
	}
	s.Delete(bucketOf, objectOf)
	if kept := storetest.Versions(t, h, 2, "deleted 0, undelete 3, more", "", ids[2]); kept[0].Created.Before(kept[1].Created) {
		t.Errorf("deleted: got %+v", kept)
	}
}

// TestReadVersion tests parts of generations, as a server sends them that keeps ranges and one that ignores them.
func TestReadVersion(t *testing.T) {
	t.Parallel()
	for _, ignores := range []bool{false, true} {
		s := serve(t)
		s.WholeOnly = ignores
		key := bytes.Repeat([]byte{7}, 32)
		old := s.Put(bucketOf, objectOf, gcstest.Object{Data: []byte("0123456789"), Key: key})
		s.Put(bucketOf, objectOf, gcstest.Object{Data: []byte("other")})
		plain, sealed := s.at(t, s.block), s.at(t, s.block.with("encryption_key", base64.StdEncoding.EncodeToString(key)))
		for part, want := range map[[2]int64]string{
			{0, -1}: "0123456789", {0, 4}: "0123", {6, 4}: "6789", {6, -1}: "6789", {6, 100}: "6789", {9, 1}: "9", {10, 5}: "", {10, -1}: "",
			{1000, 5}: "", {3, 0}: "",
		} {
			if got, err := storetest.Historian(t, sealed).ReadVersion(t.Context(), old, part[0], part[1]); string(got) != want || err != nil {
				t.Errorf("ignores %t, %v: got %q, %v, want %q", ignores, part, got, err, want)
			}
		}
		if _, err := storetest.Historian(t, plain).ReadVersion(t.Context(), old, 0, 3); err == nil || errors.Is(err, store.ErrNoVersion) {
			t.Errorf("without the key: %v", err)
		}
		s.Forget(bucketOf, objectOf, old)
		for _, vague := range []bool{false, true} {
			s.Change(func(s *gcstest.Service) { s.Vague = vague })
			for name, id := range map[string]string{"deleted": old, "unknown": "4711", "none": "", "a text": "a&b", "zero": "0"} {
				if got, err := storetest.Historian(t, plain).ReadVersion(t.Context(), id, 0, -1); !errors.Is(err, store.ErrNoVersion) || got != nil {
					t.Errorf("%s: got %q, %v", name, got, err)
				}
			}
			other := s.at(t, s.block.with("bucket", "none"))
			if _, err := storetest.Historian(t, other).ReadVersion(t.Context(), old, 0, -1); err == nil || errors.Is(err, store.ErrNoVersion) {
				t.Errorf("no bucket: %v", err)
			}
		}
	}
}

// TestRefusedVersions tests what users see if versions cannot be listed or read.
func TestRefusedVersions(t *testing.T) {
	t.Parallel()
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "versions", gcstest.Token, "canary")
	page := func(next string, items ...any) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			lists := strings.HasSuffix(r.URL.Path, "/o")
			if lists {
				nettest.Reply(w, 200, map[string]any{"items": items, "nextPageToken": next})
			}
			return lists
		}
	}
	item := func(pairs ...string) map[string]string {
		o := map[string]string{"name": objectOf, "generation": "17", "size": "5", "timeCreated": "2026-01-31T12:00:00Z"}
		for i := 0; i < len(pairs); i += 2 {
			o[pairs[i]] = pairs[i+1]
		}
		return o
	}
	for name, c := range map[string]struct {
		answer      func(http.ResponseWriter, *http.Request) bool
		permissions []string
		is          error
		read        bool
	}{
		"no right to list": {permissions: []string{"storage.objects.get"}, is: store.ErrDenied},
		"no right to read": {permissions: []string{"storage.objects.list"}, is: store.ErrDenied, read: true},
		"no versions":      {answer: page("")},
		"a generation":     {answer: page("", item("generation", "x"))},
		"no generation":    {answer: page("", item("generation", ""))},
		"no size":          {answer: page("", item("size", ""))},
		"a negative size":  {answer: page("", item("size", "-5"))},
		"a long size":      {answer: page("", item("size", "99999999999999999999"))},
		"a time":           {answer: page("", item("timeCreated", "now"))},
		"not a list":       {answer: page("", 5)},
		"the same page":    {answer: page("a", item())},
		"no end":           {answer: page("a")},
		"too many":         {answer: page("a", slices.Repeat([]any{item()}, 60_000)...)},
		"another part": {read: true, answer: func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Range", "bytes 0-1/200")
			w.Header().Set("X-Goog-Generation", r.FormValue("generation"))
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write([]byte("ab"))
			return true
		}},
		"another generation": {read: true, answer: func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("X-Goog-Generation", "1")
			_, _ = w.Write([]byte("ab"))
			return true
		}},
	} {
		s := atGoogle(t)
		id := s.Put(bucketOf, objectOf, gcstest.Object{Data: storetest.State(1)})
		s.Permissions = c.permissions
		if c.answer != nil {
			s.before(c.answer)
		}
		h := storetest.Historian(t, s.at(t, s.block))
		var err error
		if c.read {
			_, err = h.ReadVersion(t.Context(), id, 5, 2)
		} else {
			_, _, err = h.Versions(t.Context(), 5)
		}
		switch {
		case err == nil || c.is != nil && !errors.Is(err, c.is):
			t.Errorf("%s: %v", name, err)
		default:
			says.Error(t, name, err)
		}
	}
}

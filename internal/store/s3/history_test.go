package s3

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/object/objecttest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
)

// TestVersions tests the list of versions of a state beside other objects, at AWS and elsewhere, with and without a
// table.
func TestVersions(t *testing.T) {
	t.Parallel()
	for _, s := range []*service{atAWS(t), serve(t, objecttest.Kept)} {
		for _, b := range []attrs{s.block, s.block.With("dynamodb_table", tableName)} {
			s.Create(bucketOf)
			h := storetest.Historian(t, carefully(at(t, b)))
			storetest.Versions(t, h, 10, "")
			s.Put(bucketOf, "net/prod", []byte("0123"))
			storetest.Versions(t, h, 10, "current 4", noVersion)
			s.Keep(bucketOf)
			s.Put(bucketOf, "net/prod.tflock", storetest.Lock("1").JSON())
			s.Put(bucketOf, "net/prod.tflock-proof", []byte("x"))
			s.Put(bucketOf, "net/pro", []byte("x"))
			one := s.Put(bucketOf, "net/prod", []byte("1"))
			empty := s.Put(bucketOf, "net/prod", nil)
			two := s.Put(bucketOf, "net/prod", []byte("22"))
			gone := s.Delete(bucketOf, "net/prod")
			const all = "deleted 0, older 2, deleted 0, older 1, older 4"
			for limit, want := range map[int]string{10: all, 5: all, 2: "deleted 0, older 2, more", 1: "deleted 0, more"} {
				s.Requests()
				storetest.Versions(t, h, limit, want, gone, two, empty, one, noVersion)
				if n := len(s.Requests()); n != 1 {
					t.Errorf("%d versions: %d requests", limit, n)
				}
			}
			three := s.Put(bucketOf, "net/prod", []byte("333"))
			storetest.Versions(t, h, 1, "current 3, more", three)
		}
	}
}

// TestManyVersions tests a list of several pages: only as many are requested as are shown.
func TestManyVersions(t *testing.T) {
	t.Parallel()
	s := serve(t, objecttest.Kept)
	s.Keep(bucketOf)
	const all = 2500
	for n := range all {
		s.Put(bucketOf, "net/prod", []byte(fmt.Sprint(n)))
	}
	h := storetest.Historian(t, at(t, s.block))
	for limit, pages := range map[int]int{20: 1, 999: 1, 1000: 2, 3000: 3} {
		s.Requests()
		kept, more, err := h.Versions(t.Context(), limit)
		if n := len(s.Requests()); err != nil || len(kept) != min(limit, all) || more != (limit < all) || n != pages {
			t.Fatalf("%d: got %d versions, more %t, in %d pages, %v", limit, len(kept), more, n, err)
		}
		for i, v := range kept {
			data, err := []byte(nil), error(nil)
			if i%400 == 0 {
				data, err = h.ReadVersion(t.Context(), v.ID, 0, -1)
			}
			if i%400 == 0 && (err != nil || string(data) != fmt.Sprint(all-1-i)) {
				t.Errorf("version %d is %q, %v", i, data, err)
			}
		}
	}
}

// TestHistoryPolicy tests that the policy of the documentation is enough for versions with the two actions that the
// documentation adds, and not without them.
func TestHistoryPolicy(t *testing.T) {
	t.Parallel()
	const own, key = "acme-tf-state", "network/terraform.tfstate"
	s := atAWS(t)
	s.Create(own)
	s.Keep(own)
	id := s.Put(own, key, storetest.State(1))
	policy, more := objecttest.Policy(t, "../../../examples/stores/s3/policy.json"), false
	s.Allows = func(action, resource string) bool {
		return policy(action, resource) || more && (action == "s3:ListBucketVersions" && resource == "arn:aws:s3:::"+own ||
			action == "s3:GetObjectVersion" && resource == "arn:aws:s3:::"+own+"/"+key)
	}
	h := storetest.Historian(t, at(t, s.block.With("bucket", own).With("key", key)))
	for _, more = range []bool{false, true} {
		_, _, err := h.Versions(t.Context(), 10)
		_, errRead := h.ReadVersion(t.Context(), id, 0, -1)
		if errors.Is(err, store.ErrDenied) == more || errors.Is(errRead, store.ErrDenied) == more || more && errors.Join(err, errRead) != nil {
			t.Errorf("with both actions %t: %v, %v", more, err, errRead)
		}
	}
}

// TestReadVersion tests parts of versions, as a server sends them that keeps ranges and one that ignores them.
func TestReadVersion(t *testing.T) {
	t.Parallel()
	for _, ignores := range []bool{false, true} {
		s := atAWS(t) // keys are sent over TLS alone
		s.Keep(bucketOf)
		key := bytes.Repeat([]byte{7}, 32)
		old := s.Put(bucketOf, "net/prod", []byte("0123456789"))
		s.Seal(bucketOf, "net/prod", key)
		gone := s.Delete(bucketOf, "net/prod")
		s.Put(bucketOf, "net/prod", []byte("other"))
		s.WholeOnly = ignores
		plain, sealed := at(t, s.block), at(t, s.block.With("encrypt", true).With("sse_customer_key", base64.StdEncoding.EncodeToString(key)))
		for part, want := range map[[2]int64]string{
			{0, -1}: "0123456789", {0, 4}: "0123", {6, 4}: "6789", {6, -1}: "6789", {6, 100}: "6789", {9, 1}: "9", {10, 5}: "", {10, -1}: "",
			{1000, 5}: "", {3, 0}: "",
		} {
			got, err := storetest.Historian(t, sealed).ReadVersion(t.Context(), old, part[0], part[1])
			if string(got) != want || err != nil {
				t.Errorf("ignores %t, %v: got %q, %v, want %q", ignores, part, got, err, want)
			}
		}
		for name, id := range map[string]string{"a delete marker": gone, "unknown": "4711", "none": "", "long": strings.Repeat("x", 5000)} {
			if got, err := storetest.Historian(t, plain).ReadVersion(t.Context(), id, 0, -1); !errors.Is(err, store.ErrNoVersion) || got != nil {
				t.Errorf("%s: got %q, %v", name, got, err)
			}
		}
		if _, err := storetest.Historian(t, plain).ReadVersion(t.Context(), old, 0, 3); err == nil || errors.Is(err, store.ErrNoVersion) {
			t.Errorf("without the key: %v", err)
		}
		s.Forget(bucketOf, "net/prod", old)
		if _, err := storetest.Historian(t, sealed).ReadVersion(t.Context(), old, 0, -1); !errors.Is(err, store.ErrNoVersion) {
			t.Errorf("deleted for good: %v", err)
		}
	}
}

// TestRefusedVersions tests what users see if versions cannot be listed or read.
func TestRefusedVersions(t *testing.T) {
	t.Parallel()
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "versions", secret, objecttest.Canary)
	answer := func(status int, code string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			lists := r.URL.Query().Has("versions")
			if lists {
				objecttest.Refuse(w, status, code, objecttest.Canary)
			}
			return lists
		}
	}
	list := func(text string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			lists := r.URL.Query().Has("versions")
			if lists {
				w.Header().Set("Content-Type", "application/xml")
				_, _ = w.Write([]byte(text))
			}
			return lists
		}
	}
	const one = `<Version><Key>net/prod</Key><VersionId>a</VersionId><IsLatest>true</IsLatest>` +
		`<LastModified>2026-01-31T12:00:00.000Z</LastModified>`
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request) bool
		denied string // an action
		is     error
		read   bool // a version is read, not listed
		works  bool
	}{
		"no right to list":  {denied: "s3:ListBucketVersions", is: store.ErrDenied},
		"no right to read":  {denied: "s3:GetObjectVersion", is: store.ErrDenied, read: true},
		"501":               {answer: answer(501, "NotImplemented")},
		"405":               {answer: answer(405, "MethodNotAllowed")},
		"another list":      {answer: list(`<ListBucketResult><Contents><Key>net/prod</Key></Contents></ListBucketResult>`)},
		"a page of a proxy": {answer: list(`<html><body>welcome</body></html>`)},
		"no size":           {answer: list(`<ListVersionsResult>` + one + `</Version></ListVersionsResult>`)},
		"a size below zero": {answer: list(`<ListVersionsResult>` + one + `<Size>-1</Size></Version></ListVersionsResult>`)},
		"no number":         {answer: list(`<ListVersionsResult>` + one + `<Size>x</Size></Version></ListVersionsResult>`)},
		"no end": {works: true, answer: list(`<ListVersionsResult><IsTruncated>true</IsTruncated><NextKeyMarker>net/prod</NextKeyMarker>` +
			`<NextVersionIdMarker>a</NextVersionIdMarker>` + one + `<Size>1</Size></Version></ListVersionsResult>`)},
		"no end, of others": {answer: list(`<ListVersionsResult><IsTruncated>true</IsTruncated><NextKeyMarker>net/prod</NextKeyMarker>` +
			`</ListVersionsResult>`)},
		"another part": {read: true, answer: func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Range", "bytes 0-1/200")
			w.Header().Set("ETag", `"e"`)
			w.Header().Set("X-Amz-Version-Id", r.URL.Query().Get("versionId"))
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write([]byte("ab"))
			return true
		}},
	} {
		s := serve(t, objecttest.Kept)
		s.Keep(bucketOf)
		id := s.Put(bucketOf, "net/prod", storetest.State(1))
		if c.answer != nil {
			s.mayBe.Store(&c.answer)
		}
		s.Allows = func(action, _ string) bool { return action != c.denied }
		h := storetest.Historian(t, at(t, s.block))
		var err error
		if c.read {
			_, err = h.ReadVersion(t.Context(), id, 5, 2)
		} else {
			_, _, err = h.Versions(t.Context(), 5)
		}
		switch {
		case c.works && err == nil:
		case err == nil || c.is != nil && !errors.Is(err, c.is):
			t.Errorf("%s: %v", name, err)
		default:
			says.Error(t, name, err)
		}
	}
}

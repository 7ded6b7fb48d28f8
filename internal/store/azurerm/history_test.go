package azurerm

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/azurerm/azuretest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
)

// TestVersions tests what accounts keep of a blob that is locked, written, and emptied.
func TestVersions(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		versioning, softDelete, snapshot bool
		written, removed, deleted        string // the versions after two writes, a removal, and the deletion of the blob
	}{
		"nothing": {written: "current 2", removed: "", deleted: ""},
		"versions": {versioning: true, written: "current 2, older 1", removed: "deleted 0, older 2, older 1",
			deleted: "deleted 0, older 2, older 1"},
		"snapshots": {snapshot: true, written: "current 2, older 1", removed: "deleted 0, older 2, older 1", deleted: ""},
		"snapshots of versions": {versioning: true, snapshot: true, written: "current 2, older 1", removed: "deleted 0, older 2, older 1",
			deleted: "deleted 0, older 2, older 1"},
		"soft delete": {softDelete: true, written: "current 2, undelete 1", removed: "deleted 0, undelete 2, undelete 1",
			deleted: "deleted 0, undelete 2, undelete 1"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := atAzure(t)
			s.Versioning, s.SoftDelete = c.versioning, c.softDelete
			for _, other := range []string{"net/prod.tflock-proof", "net/prod2", "net/pro"} {
				s.Put(containerOf, other, azuretest.Blob{Data: []byte("other")})
			}
			state := s.at(t, "snapshot", c.snapshot)
			h := storetest.Historian(t, state)
			storetest.Versions(t, h, 10, "")
			read := store.Version("")
			for n := range 2 {
				must(t, state.Lock(t.Context(), storetest.Lock("1")))
				next, err := state.Write(t.Context(), bytes.Repeat([]byte("x"), n+1), read)
				must(t, err)
				must(t, state.Unlock(t.Context(), "1"))
				read = next
			}
			kept := storetest.Versions(t, h, 10, c.written)
			for i, v := range kept {
				got, err := h.ReadVersion(t.Context(), v.ID, 0, -1)
				if v.Status == store.KeptUndelete && errors.Is(err, store.ErrNoVersion) {
					continue
				}
				if err != nil || int64(len(got)) != v.Size || v.Created.IsZero() || i > 0 && v.Created.After(kept[i-1].Created) {
					t.Errorf("%+v: got %q, %v", v, got, err)
				}
			}
			must(t, state.Remove(t.Context(), read))
			storetest.Versions(t, h, 10, c.removed)
			if strings.Count(c.removed, ",") == 2 {
				storetest.Versions(t, h, 3, c.removed)
				storetest.Versions(t, h, 2, c.removed[:strings.LastIndex(c.removed, ",")]+", more")
			}
			s.Delete(containerOf, name)
			storetest.Versions(t, h, 10, c.deleted)
		})
	}
}

// TestFolded tests which of neighboring versions with the same content are listed.
func TestFolded(t *testing.T) {
	t.Parallel()
	s := atAzure(t)
	s.Versioning = true
	put := func(data string) string {
		s.Put(containerOf, name, azuretest.Blob{Data: []byte(data)})
		return s.Look(containerOf, name).Version
	}
	empty, written, first := put(""), put("a"), put("a")
	second, _, third := put("b"), put("a"), put("a")
	h := storetest.Historian(t, s.at(t))
	kept := storetest.Versions(t, h, 10, "current 1, older 1, older 1", third, second, first)
	if kept[2].Created.Format("2006-01-02T15:04:05.0000000Z") != written {
		t.Errorf("the first version is of %s, want %s", kept[2].Created, written)
	}
	if _, err := h.ReadVersion(t.Context(), empty, 0, -1); !errors.Is(err, store.ErrNoVersion) {
		t.Errorf("an empty blob: %v", err)
	}
	s.SoftDelete = true
	s.Forget(containerOf, name, second)
	storetest.Versions(t, h, 10, "current 1, undelete 1, older 1", third, second, first)
	if _, err := h.ReadVersion(t.Context(), second, 0, -1); !errors.Is(err, store.ErrNoVersion) {
		t.Errorf("a soft-deleted version: %v", err)
	}
}

// TestFolders tests accounts with folders, which refuse to list versions.
func TestFolders(t *testing.T) {
	t.Parallel()
	s := atAzure(t)
	s.on(func(w http.ResponseWriter, r *http.Request) bool {
		refused := strings.Contains(r.URL.Query().Get("include"), "versions")
		if refused {
			azuretest.Fail(w, 400, "InvalidQueryParameterValue")
		}
		return refused
	})
	state := s.at(t, "snapshot", true)
	must(t, life(t, state, 1))
	must(t, life(t, state, 2))
	storetest.Versions(t, storetest.Historian(t, state), 10,
		fmt.Sprintf("current %d, older %d", len(storetest.State(2)), len(storetest.State(1))))
}

// TestReadVersion tests parts of versions and snapshots, as a server sends them that keeps ranges and one that ignores
// them.
func TestReadVersion(t *testing.T) {
	t.Parallel()
	for _, ignores := range []bool{false, true} {
		for what, s := range map[string]*service{"Azure": atAzure(t), "an emulator": emulator(t)} {
			s.WholeOnly, s.Versioning = ignores, true
			s.Put(containerOf, name, azuretest.Blob{Data: []byte("0123456789")})
			old := s.Look(containerOf, name).Version
			s.Put(containerOf, name, azuretest.Blob{Data: []byte("other")})
			s.CustomerKey = base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
			h := storetest.Historian(t, s.at(t, "customer_provided_key", s.CustomerKey))
			if what == "an emulator" { // customer keys are sent over TLS alone
				s.CustomerKey = ""
				h = storetest.Historian(t, s.at(t))
			}
			for part, want := range map[[2]int64]string{
				{0, -1}: "0123456789", {0, 4}: "0123", {6, 4}: "6789", {6, -1}: "6789", {6, 100}: "6789", {9, 1}: "9", {10, 5}: "", {10, -1}: "",
				{1000, 5}: "", {3, 0}: "",
			} {
				if got, err := h.ReadVersion(t.Context(), old, part[0], part[1]); string(got) != want || err != nil {
					t.Errorf("%s, ignores %t, %v: got %q, %v, want %q", what, ignores, part, got, err, want)
				}
			}
			if _, err := storetest.Historian(t, s.at(t)).ReadVersion(t.Context(), old, 0, 3); s.CustomerKey != "" &&
				(err == nil || errors.Is(err, store.ErrNoVersion)) {
				t.Errorf("%s, without the key: %v", what, err)
			}
			s.Forget(containerOf, name, old)
			for name, id := range map[string]string{"deleted": old, "unknown": "2026-01-01T00:00:00.0000000Z", "none": "", "a text": "a&b\n",
				"an ETag": "0x8D0", "a quote": `"`, "a star": "*", "long": strings.Repeat("x", 5000)} {
				if got, err := h.ReadVersion(t.Context(), id, 0, -1); !errors.Is(err, store.ErrNoVersion) || got != nil {
					t.Errorf("%s, %s: got %q, %v", what, name, got, err)
				}
			}
		}
	}
}

// TestCurrentByETag tests that the ID of the current state finds nothing after the state has changed.
func TestCurrentByETag(t *testing.T) {
	t.Parallel()
	for _, ignores := range []bool{false, true} {
		s := emulator(t)
		s.Ignores[azuretest.IfMatch] = ignores
		s.Put(containerOf, name, azuretest.Blob{Data: []byte("1")})
		h := storetest.Historian(t, s.at(t))
		kept := storetest.Versions(t, h, 10, "current 1")
		if got, err := h.ReadVersion(t.Context(), kept[0].ID, 0, -1); err != nil || string(got) != "1" {
			t.Errorf("got %q, %v", got, err)
		}
		s.Put(containerOf, name, azuretest.Blob{Data: []byte("2")})
		if got, err := h.ReadVersion(t.Context(), kept[0].ID, 0, -1); !errors.Is(err, store.ErrNoVersion) {
			t.Errorf("changed: got %q, %v", got, err)
		}
	}
}

// TestRefusedVersions tests what users see if versions cannot be listed or read.
func TestRefusedVersions(t *testing.T) {
	t.Parallel()
	says := testkit.OpenGolden(t, "testdata/mistakes.txt", "versions", azuretest.Key, "canary")
	page := func(text string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			lists := r.URL.Query().Get("comp") == "list"
			if lists {
				w.Header().Set("Content-Type", "application/xml")
				_, _ = w.Write([]byte("<EnumerationResults>" + text + "</EnumerationResults>"))
			}
			return lists
		}
	}
	blob := func(text string) string { return "<Blobs><Blob><Name>" + name + "</Name>" + text + "</Blob></Blobs>" }
	for what, c := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request) bool
		sas    string // permissions
		is     error
		read   bool
	}{
		"no right to list":  {sas: "rw", is: store.ErrDenied},
		"no right to read":  {sas: "l", is: store.ErrDenied, read: true},
		"no versions":       {answer: page("")},
		"a negative size":   {answer: page(blob("<Properties><Content-Length>-1</Content-Length></Properties>"))},
		"no size":           {answer: page(blob("<Properties><Etag>0x8D0</Etag></Properties>"))},
		"no number":         {answer: page(blob("<Properties><Content-Length>x</Content-Length></Properties>"))},
		"neither yes or no": {answer: page(blob("<Deleted>perhaps</Deleted>"))},
		"not a list":        {answer: page("<")},
		"no end":            {answer: page("<NextMarker>a</NextMarker>")},
		"another part": {read: true, answer: func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Range", "bytes 0-1/200")
			w.Header().Set("x-ms-version-id", r.URL.Query().Get("versionid"))
			w.Header().Set("x-ms-blob-type", "BlockBlob")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write([]byte("ab"))
			return true
		}},
		"another version": {read: true, is: store.ErrNoVersion, answer: func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Has("snapshot") {
				return false
			}
			w.Header().Set("x-ms-version-id", "2026-01-01T00:00:00.0000000Z")
			w.Header().Set("x-ms-blob-type", "BlockBlob")
			_, _ = w.Write([]byte("ab"))
			return true
		}},
	} {
		s := atAzure(t)
		s.Versioning = true
		s.Put(containerOf, name, azuretest.Blob{Data: storetest.State(1)})
		id := s.Look(containerOf, name).Version
		if c.answer != nil {
			s.on(c.answer)
		}
		b := s.block
		if c.sas != "" {
			b = b.with("access_key", nil, "sas_token", strings.Replace(azuretest.SAS, "sp=r", "sp="+c.sas, 1))
		}
		h := storetest.Historian(t, at(t, b, s.network))
		var err error
		if c.read {
			_, err = h.ReadVersion(t.Context(), id, 5, 2)
		} else {
			_, _, err = h.Versions(t.Context(), 5)
		}
		switch {
		case err == nil || c.is != nil && !errors.Is(err, c.is):
			t.Errorf("%s: %v", what, err)
		case !errors.Is(err, store.ErrNoVersion):
			says.Error(t, what, err)
		}
	}
}

package gcs

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/gcs/gcstest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/store/storetest"
)

// emulator is a server that others wrote.
type emulator struct{ origin string }

func (r emulator) ask(t *testing.T, method, path string, body []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.origin+path, bytes.NewReader(body))
	must(t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %s", method, path, resp.Status)
	}
}

func (r emulator) create(t *testing.T, bucket string, keeps bool) {
	t.Helper()
	r.ask(t, http.MethodPost, "/storage/v1/b?project=p", fmt.Appendf(nil, `{"name":%q,"versioning":{"enabled":%t}}`, bucket, keeps))
}

func (r emulator) put(t *testing.T, bucket, object string, data []byte) {
	t.Helper()
	r.ask(t, http.MethodPost, "/upload/storage/v1/b/"+bucket+"/o?uploadType=media&name="+url.QueryEscape(object), data)
}

func (r emulator) delete(t *testing.T, bucket, object string) {
	t.Helper()
	r.ask(t, http.MethodDelete, "/storage/v1/b/"+bucket+"/o/"+url.PathEscape(object), nil)
}

// TestRealFakeGCS runs the suite of every store on fake-gcs-server, which ignores the condition of a DELETE.
func TestRealFakeGCS(t *testing.T) {
	r, n := emulator{gcstest.StartReal(t)}, 0
	t.Parallel()
	s := newService()
	s.block = s.block.with("storage_custom_endpoint", r.origin+"/storage/v1/")
	places := func(keeps bool) storetest.Places {
		return func(t *testing.T, name string) storetest.Place {
			t.Helper()
			n++
			bucket, prefix := fmt.Sprint("bucket", n), "net/"+name
			r.create(t, bucket, keeps)
			b := s.block.with("bucket", bucket).with("prefix", prefix)
			return storetest.Place{
				Open:    func(t *testing.T) store.State { t.Helper(); return s.at(t, b) },
				Put:     func(t *testing.T, data []byte) { t.Helper(); r.put(t, bucket, prefix+"/default.tfstate", data) },
				Lose:    func(t *testing.T) { t.Helper(); r.delete(t, bucket, prefix+"/default.tflock") },
				Secrets: []string{gcstest.Token},
			}
		}
	}
	storetest.Run(t, storetest.Harness{
		Properties: store.Properties{HasLocks: true}, Renames: true, Place: places(false), Versioned: places(true),
	})
	r.create(t, "own", false)
	large := bytes.Repeat([]byte("x"), 3<<20+1) // in parts
	for _, prefix := range []string{"net/b", "net/a", "other"} {
		state := s.at(t, s.block.with("bucket", "own").with("prefix", prefix))
		must(t, state.Lock(t.Context(), storetest.Lock("1")))
		read, err := state.Write(t.Context(), storetest.State(1), "")
		must(t, err)
		_, err = state.Write(t.Context(), large, read)
		must(t, err)
		must(t, state.Unlock(t.Context(), "1"))
		if got, _, err := state.Read(t.Context()); err != nil || !bytes.Equal(got, large) {
			t.Errorf("read %d bytes, %v", len(got), err)
		}
	}
	opened, err := s.open(t, s.block.with("bucket", "own"))
	must(t, err)
	names, err := opened.List(t.Context(), "net/")
	if err != nil || strings.Join(names, " ") != "net/a/default.tfstate net/b/default.tfstate" {
		t.Errorf("got %q, %v", names, err)
	}
	if _, _, err := s.at(t, s.block.with("bucket", "none")).Read(t.Context()); err == nil {
		t.Error("a bucket that is missing has no state")
	}
}
